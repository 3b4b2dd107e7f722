// ensemble: the points on which oracle.heads class models disagree, each fitted on members drawn with replacement: the
// share that does not vote as the majority, ties by the mean margin. Then diverse.
#include <algorithm>
#include <map>

#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

constexpr int64_t kEnsemblePoints = 32768;  // points that all heads predict, drawn

// How often each row counts in a head: as many draws with replacement as there are members, of one class at a time, so
// that no class is lost.
std::vector<int32_t> bootstrap(const Candidates& board, int64_t head) {
  std::vector<int32_t> times(board.row_class().size(), 0);
  std::map<int64_t, std::vector<size_t>> members;
  for (size_t row = 0; row < times.size(); ++row) {
    if (board.row_class()[row] >= 0) members[board.row_class()[row]].push_back(row);
  }
  for (const auto& [c, rows] : members) {
    Random random(board.round().seed, Purpose::oracle, static_cast<uint64_t>(board.round().round),
                  static_cast<uint64_t>(board.pool().samples()[rows[0]]), static_cast<uint32_t>(16 + head));
    for (size_t k = 0; k < rows.size(); ++k) ++times[rows[random.below(rows.size())]];
  }
  return times;
}

}  // namespace

std::unique_ptr<QuerySampler> ensemble_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  const PointOptions options = point_options(settings);
  const int64_t heads = settings.heads;
  PAL_CHECK(heads >= 2, "oracle.heads", heads, "an ensemble has at least 2");
  return make_point_sampler(
      "ensemble", options, [options, heads](const Candidates& board, const ClassModel& model, int64_t count) {
        const std::vector<int64_t> points = free_points(board, kEnsemblePoints);
        std::vector<std::map<int64_t, int64_t>> votes(points.size());
        std::vector<double> margin(points.size(), 0);
        for (int64_t h = 0; h < heads; ++h) {
          const ClassModel head(board.pool(), board.row_class(), model.classes(), options.model, bootstrap(board, h));
          const std::vector<Belief> said = beliefs(board, head, points);
          for (size_t k = 0; k < points.size(); ++k) {
            ++votes[k][said[k].first];
            margin[k] += said[k].p_first - said[k].p_second;
          }
        }
        std::vector<double> scores;
        for (size_t k = 0; k < points.size(); ++k) {
          int64_t most = 0;
          for (const auto& vote : votes[k]) most = std::max(most, vote.second);
          // The margin (0 to 1) weighs less than half a vote.
          const auto all = static_cast<double>(heads);
          scores.push_back(static_cast<double>(heads - most) - 0.5 * margin[k] / all);
        }
        return best_and_diverse(board, points, scores, count);
      });
}

}  // namespace pal::oracle
