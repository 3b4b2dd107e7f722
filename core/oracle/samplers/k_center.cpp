// k_center: always the point least similar to all that is known or chosen.
// Reference: Sener and Savarese, "Active learning for convolutional neural networks: a core-set approach" (ICLR 2018).
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/oracle/samplers/products.h"
#include "core/oracle/samplers/samplers.h"

namespace pal::oracle {
namespace {

constexpr int64_t kCenterPoints = 65536, kCenterKnown = 2048;  // drawn, at most

// The similarity of each row to the nearest of the others.
std::vector<float> nearest_similarity(const at::Tensor& rows, const at::Tensor& others) {
  std::vector<float> most(static_cast<size_t>(rows.size(0)));
  constexpr int64_t kRows = 4096;
  for (int64_t begin = 0; begin < rows.size(0); begin += kRows) {
    const int64_t n = std::min(kRows, rows.size(0) - begin);
    const at::Tensor products = times_transposed(rows.narrow(0, begin, n), others);
    for (int64_t i = 0; i < n; ++i) {
      const float* p = products.const_data_ptr<float>() + i * others.size(0);
      most[begin + i] = *std::max_element(p, p + others.size(0));
    }
  }
  return most;
}

}  // namespace

std::unique_ptr<QuerySampler> k_center_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  return make_point_sampler(
      "k_center", point_options(settings), [](const Candidates& board, const ClassModel&, int64_t count) {
        const std::vector<int64_t> points = free_points(board, kCenterPoints);
        std::vector<int64_t> known;  // spread over the pool when there are too many
        for (size_t row = 0; row < board.row_class().size(); ++row) {
          if (board.row_class()[row] >= 0) known.push_back(static_cast<int64_t>(row));
        }
        if (const auto all = static_cast<int64_t>(known.size()); all > kCenterKnown) {
          for (int64_t k = 0; k < kCenterKnown; ++k) known[k] = known[k * all / kCenterKnown];
          known.resize(kCenterKnown);
        }
        const std::vector<int64_t> here = board.points_here(points);
        const at::Tensor rows = board.rows_here(points, here);
        std::vector<float> covered;
        if (!known.empty()) covered = nearest_similarity(rows, board.pool().gather(known));
        std::vector<int64_t> out;
        for (int64_t k : farthest_first(rows, here, std::move(covered), count, board.pool().comm()))
          out.push_back(points[k]);
        return out;
      });
}

}  // namespace pal::oracle
