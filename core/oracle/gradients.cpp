// gradients: the points that would change a linear head most.
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "core/oracle/samplers.h"
#include "kernels/base/philox.h"
#include "kernels/base/vec.h"

namespace pal {
namespace {

constexpr int64_t kGradientPoints = 16384;   // points whose probabilities are kept, drawn: C numbers each

}  // namespace

std::unique_ptr<QuerySampler> make_model_change(const PointOptions& options) {
  return make_point_sampler("model_change", options, [](const Board& board, const ClassModel& model, int64_t count) {
    const std::vector<int64_t> points = free_points(board, board.count());
    std::vector<double> scores(points.size(), 0);
    for_each_belief(board, model, points, [&](size_t k, const float* p) {
      // ‖p − e_c‖² = ‖p‖² + 1 − 2 p_c; rows have length 1.
      double square = 0;
      for (int64_t c = 0; c < model.classes(); ++c) square += static_cast<double>(p[c]) * p[c];
      for (int64_t c = 0; c < model.classes(); ++c) {
        if (p[c] > 0) scores[k] += p[c] * std::sqrt(std::max(0.0, square + 1 - 2.0 * p[c]));
      }
    });
    return best_and_diverse(board, points, scores, count);
  });
}

std::unique_ptr<QuerySampler> make_gradients(const PointOptions& options) {
  return make_point_sampler("gradients", options, [](const Board& board, const ClassModel& model, int64_t count) {
    const std::vector<int64_t> points = free_points(board, kGradientPoints);
    const auto n = static_cast<int64_t>(points.size());
    const int64_t classes = model.classes(), dims = board.rows().size(1);
    const at::Tensor x = board.point_rows(points);
    at::Tensor residual = at::zeros({n, classes}, at::kFloat);   // p − e_first
    std::vector<double> square(points.size(), 0), distance;
    const auto& ops = kernels::vec_ops<float>(kernels::best_isa());
    for_each_belief(board, model, points, [&](size_t k, const float* p) {
      float* r = residual.data_ptr<float>() + static_cast<int64_t>(k) * classes;
      std::copy(p, p + classes, r);
      float* const most = std::max_element(r, r + classes);
      if (*most > 0) *most -= 1;
      square[k] = ops.dot(r, r, classes);
    });
    distance = square;   // to nothing at first: the norm
    Random random(board.round().seed, Purpose::oracle, static_cast<uint64_t>(board.round().round), 0, 3);
    std::vector<int64_t> chosen;
    for (int64_t next = n == 0 ? -1 : std::max_element(distance.begin(), distance.end()) - distance.begin();
         next >= 0 && static_cast<int64_t>(chosen.size()) < std::min(count, n);) {
      chosen.push_back(points[next]);
      const float *r = residual.const_data_ptr<float>() + next * classes, *row = x.const_data_ptr<float>() + next * dims;
      double total = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (distance[i] < 0) continue;   // taken
        const double inner = ops.dot(residual.const_data_ptr<float>() + i * classes, r, classes) * ops.dot(x.const_data_ptr<float>() + i * dims, row, dims);
        distance[i] = i == next ? -1 : std::min(distance[i], std::max(0.0, square[i] + square[next] - 2 * inner));
        total += std::max(0.0, distance[i]);
      }
      double left = random.next_double() * total;
      int64_t last = -1;
      next = -1;
      for (int64_t i = 0; i < n && next < 0; ++i) {
        if (distance[i] < 0) continue;
        last = i;
        left -= distance[i];
        if (left < 0) next = i;
      }
      if (next < 0) next = last;   // rounding, or all gradients are zero
    }
    return chosen;
  });
}

}  // namespace pal
