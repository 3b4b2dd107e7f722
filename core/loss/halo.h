// halo: exchanges the rows of other ranks that this rank's part of the sparse rest needs, and lifts that part to rows.
//
// Every rank holds the whole graph of the batch and computes what it sends and receives, so no index is exchanged. Rows
// travel by all-to-all-v, or by all-gather when the ranks together need more than half of what all-gather would move. G
// is symmetric, so backward needs no communication.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/loss/criterion.h"

namespace pal::loss {

enum class Carrier { none, all_to_all, all_gather };

struct Halo {
  Carrier carrier = Carrier::none;
  std::vector<int64_t> send;         // local positions, in order of the receiving rank
  std::vector<int64_t> send_counts;  // (W)
  std::vector<int64_t> recv_counts;  // (W)
  // The lifted rest: local rows × partners.
  std::vector<int64_t> offsets;  // (local rows + 1)
  std::vector<int32_t> columns;  // into the tensor that gather_partners returns
  std::vector<double> weights;
};

Halo make_halo(const Batch& batch, int rank, graph::SelfLoops self_loops);
// Collective. All rows of the global batch, ordered by position, then view: row (v, p) is p · V + v for any W.
at::Tensor gather_rows(const at::Tensor& rows, const Batch& batch, comm::Comm& comm);
// Collective. The rows that `columns` index.
at::Tensor gather_partners(const Halo& halo, const at::Tensor& z, const Batch& batch, comm::Comm& comm);

}  // namespace pal::loss
