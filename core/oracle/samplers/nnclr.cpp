// nnclr: drawn points, each with its nearest neighbor (cosine) in a support set: the first of the oracle.neighbors
// nearest that is not taken. oracle.support: so many more points, drawn; 0: the drawn points themselves, the paper's
// in-batch form. oracle.neighbors=0 asks nothing: plain SSL.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/ops/similarity.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"

namespace pal::oracle {

std::unique_ptr<QuerySampler> nnclr_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  PAL_CHECK(settings.neighbors >= 0 && settings.neighbors <= kernels::kMaxNearest, "oracle.neighbors",
            settings.neighbors, "give 0 to 64");
  PAL_CHECK(settings.support >= 0, "oracle.support", settings.support, "give 0 (in the batch) or more");
  return make_pair_sampler(
      "nnclr", PoolNeeds::embeddings,
      [neighbors = settings.neighbors, more = settings.support](const Candidates& board, int64_t count) {
        std::vector<PointPair> pairs;
        if (neighbors == 0) return pairs;
        // Twice as many anchors as questions: those whose neighbors are taken or known are dropped.
        const int64_t anchors = 2 * count;
        std::vector<int64_t> drawn = free_points(board, anchors + more);
        std::sort(drawn.begin(), drawn.end(), [&](int64_t a, int64_t b) {
          return std::pair(board.points()[a].draw, a) < std::pair(board.points()[b].draw, b);
        });
        const int64_t queries = std::min(anchors, static_cast<int64_t>(drawn.size()));
        if (drawn.size() < 2) return pairs;
        const at::Tensor rows = board.point_rows(drawn);
        const at::Tensor support = more == 0 ? rows.narrow(0, 0, queries) : rows;  // numbers: places in `drawn`
        at::Tensor self = at::empty({queries, 1}, at::kLong), ids = at::empty({queries, neighbors}, at::kLong);
        for (int64_t q = 0; q < queries; ++q) self.data_ptr<int64_t>()[q] = q;
        at::Tensor scores = at::empty({queries, neighbors}, at::kDouble);
        ops::nearest(ids, scores, rows.narrow(0, 0, queries), {support, {}, {}}, self, kernels::Metric::cosine,
                     at::get_num_threads());
        for (int64_t q = 0; q < queries; ++q) {
          for (int64_t k = 0; k < neighbors; ++k) {
            const int64_t other = ids.const_data_ptr<int64_t>()[q * neighbors + k];
            if (other >= 0) pairs.push_back({drawn[q], drawn[other]});
          }
        }
        return pairs;
      });
}

}  // namespace pal::oracle
