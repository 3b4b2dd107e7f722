#include "core/loss/halo.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/index.h>

#include <algorithm>

#include "core/ops/tensors.h"

namespace pal::loss {
namespace {

// (V · n, D), view by view → (n, V, D).
at::Tensor by_position(const at::Tensor& z, const Batch& batch) {
  return z.view({batch.views, batch.local_positions(), z.size(1)}).transpose(0, 1).contiguous();
}

}  // namespace

Halo make_halo(const Batch& batch, int rank, graph::SelfLoops self_loops) {
  Halo halo;
  const graph::SparseRest& rest = batch.graph.rest;
  if (rest.offsets.empty()) return halo;
  const int ranks = static_cast<int>(batch.rank_begin.size()) - 1;
  const int64_t n = batch.local_positions(), views = batch.views;

  // S is symmetric: a position is sent to every other rank that has one of its columns. Columns ascend, so do ranks.
  int64_t total = 0;  // positions sent by all ranks: every rank must choose the same carrier
  std::vector<std::vector<int64_t>> send(ranks);
  std::vector<int64_t> received;
  halo.send_counts.assign(ranks, 0);
  halo.recv_counts.assign(ranks, 0);
  for (int from = 0; from < ranks; ++from) {
    for (int64_t p = batch.rank_begin[from]; p < batch.rank_begin[from + 1]; ++p) {
      int to = -1;  // rank of the last column seen
      for (int64_t e = rest.offsets[p]; e < rest.offsets[p + 1]; ++e) {
        if (to >= 0 && rest.columns[e] < batch.rank_begin[to + 1]) continue;
        do ++to;
        while (rest.columns[e] >= batch.rank_begin[to + 1]);
        if (to == from) continue;
        ++total;
        if (from == rank) send[to].push_back(p - batch.begin);
        if (to == rank) {
          received.push_back(p);
          ++halo.recv_counts[from];
        }
      }
    }
  }
  for (int to = 0; to < ranks; ++to) {
    halo.send_counts[to] = static_cast<int64_t>(send[to].size());
    halo.send.insert(halo.send.end(), send[to].begin(), send[to].end());
  }
  halo.carrier = 2 * total > (ranks - 1) * batch.graph.samples ? Carrier::all_gather : Carrier::all_to_all;

  const auto column = [&](int64_t q, int64_t u) -> int64_t {
    if (halo.carrier == Carrier::all_gather) return q * views + u;
    if (q >= batch.begin && q < batch.end) return u * n + (q - batch.begin);
    const int64_t h = std::lower_bound(received.begin(), received.end(), q) - received.begin();
    return views * n + h * views + u;
  };
  halo.offsets.push_back(0);
  for (int64_t v = 0; v < views; ++v) {
    for (int64_t p = batch.begin; p < batch.end; ++p) {
      for (int64_t e = rest.offsets[p]; e < rest.offsets[p + 1]; ++e) {
        for (int64_t u = 0; u < views; ++u) {
          if (self_loops == graph::SelfLoops::off && rest.columns[e] == p && u == v) continue;
          halo.columns.push_back(static_cast<int32_t>(column(rest.columns[e], u)));
          halo.weights.push_back(rest.weights[e]);
        }
      }
      halo.offsets.push_back(static_cast<int64_t>(halo.columns.size()));
    }
  }
  return halo;
}

at::Tensor gather_rows(const at::Tensor& rows, const Batch& batch, comm::Comm& comm) {
  const at::Tensor own = by_position(rows, batch);
  if (comm.size() == 1) return own.view({-1, rows.size(1)});
  std::vector<int64_t> counts;
  for (size_t r = 0; r + 1 < batch.rank_begin.size(); ++r)
    counts.push_back(batch.rank_begin[r + 1] - batch.rank_begin[r]);
  return comm.all_gather_v(own, counts).view({-1, rows.size(1)});
}

at::Tensor gather_partners(const Halo& halo, const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
  if (halo.carrier == Carrier::all_gather) return gather_rows(z, batch, comm);
  if (comm.size() == 1) return z;
  // index_select has no meta kernel
  const at::Tensor send = at::index(by_position(z, batch), {ops::to_device_of(z, halo.send)});
  const at::Tensor received = comm.all_to_all_v(send, halo.send_counts, halo.recv_counts);
  return at::cat({z, received.view({received.size(0) * batch.views, z.size(1)})});
}

}  // namespace pal::loss
