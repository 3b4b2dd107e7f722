// uncertainty: the points whose class the model is least certain of, then diverse.
//   entropy   of the probabilities
//   margin    p of the first class less p of the second, the smallest
//   boundary  distance of the embedding to the boundary between the first and the second class, the smallest
#include "core/oracle/samplers/samplers.h"

namespace pal::oracle {

std::unique_ptr<QuerySampler> uncertainty_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  return make_point_sampler(
      "uncertainty", point_options(settings),
      [measure = settings.measure](const Candidates& board, const ClassModel& model, int64_t count) {
        const std::vector<int64_t> points = free_points(board, board.count());
        std::vector<double> scores;
        scores.reserve(points.size());
        for (const Belief& b : beliefs(board, model, points)) {
          double score = b.entropy;
          if (measure == Uncertainty::margin) score = b.p_second - b.p_first;
          // Scores are logarithms of probabilities: their difference over its slope is a length in the embedding.
          if (measure == Uncertainty::boundary)
            score = b.second < 0 ? -1e30 : -b.gap / (model.slope(b.first, b.second) + 1e-30);
          scores.push_back(b.first < 0 ? -1e30 : score);
        }
        return best_and_diverse(board, points, scores, count);
      });
}

}  // namespace pal::oracle
