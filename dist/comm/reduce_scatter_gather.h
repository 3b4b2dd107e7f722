// reduce_scatter_gather: a large buffer summed over ranks, asleep: each rank adds one slice of all ranks' shares and hands it to all.
//
// Half the bytes and half the additions of MPI_Iallreduce on the busiest rank, whose nonblocking algorithm for few ranks is
// a tree (two ranks, 268 MB: 166 against 564 ms; four: 259 against 524). Each element is x_0 + x_1 + … in the order of ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <cstdint>

namespace pal::dist {

// float32 or float64 of at least this many bytes: below, latency counts and MPI's own is as good.
constexpr int64_t kReduceScatterBytes = int64_t{1} << 20;
bool uses_reduce_scatter_gather(const at::Tensor& t);
// Collective, of two ranks or more. t is contiguous and on the CPU.
void reduce_scatter_gather(const at::Tensor& t, MPI_Comm comm);

}  // namespace pal::dist
