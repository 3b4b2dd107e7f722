// halo: the rows of other ranks that this rank's part of the sparse rest needs, and that part lifted to rows.
//
// Every rank knows the whole graph of the batch, so no index is exchanged: a rank works out what it sends as well as
// what it receives. Rows go by all-to-all-v, or by all-gather when the ranks together need more than half of what an
// all-gather would bring. G is symmetric, so nothing returns in backward.
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
// Collective. All rows of the global batch, position by position and of each its views: row (v, p) is p · V + v, whatever W.
at::Tensor gather_rows(const at::Tensor& rows, const Batch& batch, comm::Comm& comm);
// Collective. The rows that the columns index.
at::Tensor gather_partners(const Halo& halo, const at::Tensor& z, const Batch& batch, comm::Comm& comm);

}  // namespace pal::loss
