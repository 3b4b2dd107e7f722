// nnclr: a point and its nearest neighbor in a support set.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/ops/similarity.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"

namespace pal::oracle {

std::unique_ptr<QuerySampler> make_nnclr_sampler(const NnclrSamplerOptions& options) {
  PAL_CHECK(options.neighbors >= 0 && options.neighbors <= kernels::kMaxNearest, "oracle.neighbors",
            options.neighbors, "give 0 to 64");
  PAL_CHECK(options.support >= 0, "oracle.support", options.support, "give 0 (in the batch) or more");
  return make_pair_sampler("nnclr", PoolNeeds::embeddings, [options](const Candidates& board, int64_t count) {
    std::vector<PointPair> pairs;
    if (options.neighbors == 0) return pairs;
    // Twice as many anchors as questions: those whose neighbors are taken or known fall out.
    const int64_t anchors = 2 * count;
    std::vector<int64_t> drawn = free_points(board, anchors + options.support);
    std::sort(drawn.begin(), drawn.end(), [&](int64_t a, int64_t b) {
      return std::pair(board.points()[a].draw, a) < std::pair(board.points()[b].draw, b);
    });
    const int64_t queries = std::min(anchors, static_cast<int64_t>(drawn.size()));
    if (drawn.size() < 2) return pairs;
    const at::Tensor rows = board.point_rows(drawn);
    const at::Tensor support = options.support == 0 ? rows.narrow(0, 0, queries) : rows;  // numbers: places in `drawn`
    at::Tensor self = at::empty({queries, 1}, at::kLong), ids = at::empty({queries, options.neighbors}, at::kLong);
    for (int64_t q = 0; q < queries; ++q) self.data_ptr<int64_t>()[q] = q;
    at::Tensor scores = at::empty({queries, options.neighbors}, at::kDouble);
    ops::nearest(ids, scores, rows.narrow(0, 0, queries), {support, {}, {}}, self, kernels::Metric::cosine,
                 at::get_num_threads());
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t k = 0; k < options.neighbors; ++k) {
        const int64_t other = ids.const_data_ptr<int64_t>()[q * options.neighbors + k];
        if (other >= 0) pairs.push_back({drawn[q], drawn[other]});
      }
    }
    return pairs;
  });
}

}  // namespace pal::oracle
