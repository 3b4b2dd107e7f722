// gradients: the points that would change a linear head most.
//   model_change  the largest expected gradient of the log-loss, Σ_c p_c ‖p − e_c‖ ‖x‖. Then diverse.
//   gradients     k-means++ over the gradients g = (p − e_first) ⊗ x of the predicted class: large and diverse at once.
//                 The distances come from ⟨g, g'⟩ = ⟨p − e, p' − e'⟩ ⟨x, x'⟩, so that g (C · D) is never stored.
// Reference: Ash et al., "Deep batch active learning by diverse, uncertain gradient lower bounds" (ICLR 2020).
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/oracle/samplers/samplers.h"
#include "kernels/base/philox.h"
#include "kernels/base/vec.h"

namespace pal::oracle {
namespace {

constexpr int64_t kGradientPoints = 16384;  // points whose probabilities are kept, drawn: C numbers each

}  // namespace

std::unique_ptr<QuerySampler> model_change_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  return make_point_sampler("model_change", point_options(settings),
                            [](const Candidates& board, const ClassModel& model, int64_t count) {
                              const std::vector<int64_t> points = free_points(board, board.count());
                              std::vector<double> scores(points.size(), 0);
                              for_each_belief(board, model, points, [&](size_t k, const float* p) {
                                // ‖p − e_c‖² = ‖p‖² + 1 − 2 p_c; rows have length 1.
                                double square = 0;
                                for (int64_t c = 0; c < model.classes(); ++c)
                                  square += static_cast<double>(p[c]) * p[c];
                                for (int64_t c = 0; c < model.classes(); ++c) {
                                  if (p[c] > 0) scores[k] += p[c] * std::sqrt(std::max(0.0, square + 1 - 2.0 * p[c]));
                                }
                              });
                              board.pool().complete(scores);
                              return best_and_diverse(board, points, scores, count);
                            });
}

namespace {

// A gradient, and the key of its point in the draw of the next one: the smallest of all ranks is chosen.
struct Candidate {
  double key = std::numeric_limits<double>::infinity();
  int64_t point = -1;  // index of the drawn points
  double square = 0;
  std::vector<float> residual, row;
};
Candidate first_of_all(const Candidate& own, comm::Comm& comm) {
  if (comm.size() == 1) return own;
  const auto classes = static_cast<int64_t>(own.residual.size()), dims = static_cast<int64_t>(own.row.size());
  at::Tensor sent = at::empty({1, 3 + classes + dims}, at::kDouble);
  double* to = sent.data_ptr<double>();
  to[0] = own.key;
  to[1] = static_cast<double>(own.point);
  to[2] = own.square;
  std::copy(own.row.begin(), own.row.end(), std::copy(own.residual.begin(), own.residual.end(), to + 3));
  const at::Tensor all = comm.all_gather(sent);
  Candidate best;
  for (int64_t r = 0; r < all.size(0); ++r) {
    const double* t = all.const_data_ptr<double>() + r * all.size(1);
    const auto point = static_cast<int64_t>(t[1]);
    if (point < 0 || (best.point >= 0 && std::pair(best.key, best.point) < std::pair(t[0], point))) continue;
    best = {t[0], point, t[2], {t + 3, t + 3 + classes}, {t + 3 + classes, t + 3 + classes + dims}};
  }
  return best;
}

}  // namespace

std::unique_ptr<QuerySampler> gradients_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  return make_point_sampler(
      "gradients", point_options(settings), [](const Candidates& board, const ClassModel& model, int64_t count) {
        const std::vector<int64_t> points = free_points(board, kGradientPoints), here = board.points_here(points);
        const auto n = static_cast<int64_t>(here.size());
        const int64_t classes = model.classes(), dims = board.pool().dims();
        const at::Tensor x = board.rows_here(points, here);
        at::Tensor residual = at::zeros({n, classes}, at::kFloat);  // p − e_first
        std::vector<double> square(here.size(), 0), distance;
        std::vector<Random>
            draws;  // of each point its own: the choice does not depend on which rank holds which points
        const auto& ops = kernels::vec_ops<float>(kernels::best_isa());
        int64_t next = 0;
        for_each_belief(board, model, points, [&](size_t, const float* p) {
          float* r = residual.data_ptr<float>() + next * classes;
          std::copy(p, p + classes, r);
          float* const most = std::max_element(r, r + classes);
          if (*most > 0) *most -= 1;
          square[next++] = ops.dot(r, r, classes);
        });
        for (int64_t k : here)
          draws.emplace_back(board.round().seed, Purpose::oracle, static_cast<uint64_t>(board.round().round),
                             static_cast<uint64_t>(board.points()[points[k]].sample), 3);
        distance = square;  // to nothing at first: the norm
        std::vector<int64_t> chosen;
        while (static_cast<int64_t>(chosen.size()) < std::min(count, static_cast<int64_t>(points.size()))) {
          // The first is the longest gradient. Then in proportion to the distances: the smallest of exponential draws,
          // each by its rate.
          Candidate own{.residual = std::vector<float>(static_cast<size_t>(classes), 0),
                        .row = std::vector<float>(static_cast<size_t>(dims), 0)};
          int64_t at = -1;
          for (int64_t i = 0; i < n; ++i) {
            const double wait = -std::log1p(-draws[i].next_double());
            if (distance[i] < 0) continue;  // taken
            const double key = chosen.empty() ? -distance[i] : wait / std::max(distance[i], 1e-300);
            if (at < 0 || key < own.key) at = i, own.key = key;
          }
          if (at >= 0) {
            const float *r = residual.const_data_ptr<float>() + at * classes,
                        *row = x.const_data_ptr<float>() + at * dims;
            own = {own.key, here[at], square[at], {r, r + classes}, {row, row + dims}};
          }
          const Candidate best = first_of_all(own, board.pool().comm());
          if (best.point < 0) break;
          chosen.push_back(points[best.point]);
          for (int64_t i = 0; i < n; ++i) {
            if (distance[i] < 0) continue;
            const double inner =
                ops.dot(residual.const_data_ptr<float>() + i * classes, best.residual.data(), classes) *
                ops.dot(x.const_data_ptr<float>() + i * dims, best.row.data(), dims);
            distance[i] =
                here[i] == best.point ? -1 : std::min(distance[i], std::max(0.0, square[i] + best.square - 2 * inner));
          }
        }
        return chosen;
      });
}

}  // namespace pal::oracle
