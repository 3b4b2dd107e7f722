// nccl_probe: times of all-reduces of increasing size, in the columns of nccl-tests, with inputs whose sums are exact;
// and how the devices of this machine are connected. For `pal doctor` and `pal bench comm --device cuda`. No LibTorch.
//
// Math: bandwidths as nccl-tests has them: algbw = bytes / time, busbw = algbw · 2 (W − 1) / W.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/comm/nccl_channel.h"

namespace pal::dist {

struct NcclProbeOptions {
  int64_t least_bytes = 8, most_bytes = int64_t{256} << 20, factor = 4;
  int warmup = 5, repeats = 20;
};

struct ProbeTime {
  double seconds = 0;  // of one all-reduce, the slowest rank's
  int64_t wrong = 0;   // elements over all ranks that are not the sum
};

struct ProbeRow {
  int64_t bytes = 0, count = 0;
  ProbeTime out_of_place, in_place;
};

double algorithm_bandwidth(int64_t bytes, double seconds);       // GB/s
double bus_bandwidth(int64_t bytes, double seconds, int ranks);  // GB/s

// What rank r gives at i, and what W of them add up to: integers that float32 holds exactly.
float probe_given(int rank, int64_t i);
float probe_sum(int ranks, int64_t i);
int64_t count_wrong(const std::vector<float>& got, int ranks);

// Collective. float32 sums; the same rows on every rank.
std::vector<ProbeRow> probe_all_reduce(NcclChannel& channel, MPI_Comm comm, const NcclProbeOptions& options = {});

// Collective over all ranks of the MPI job: the same on a channel of its own.
std::vector<ProbeRow> probe_world(int device, const NcclProbeOptions& options);

std::vector<std::vector<std::string>> probe_table(const std::vector<ProbeRow>& rows, int ranks);
bool probe_passed(const std::vector<ProbeRow>& rows);
// One line: whether the sums are right, and the best bus bandwidth.
std::string probe_verdict(const std::vector<ProbeRow>& rows, int ranks);

// The devices that this process sees: name, PCI address, memory, and which others each reaches directly.
std::vector<std::vector<std::string>> device_table();

}  // namespace pal::dist
