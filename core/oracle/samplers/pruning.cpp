// pruning: k-means; the points nearest to their centers while a class has fewer than oracle.pruning_near_until known
// members on average, the farthest ones later. Clusters take turns, so that a batch does not repeat itself.
// Reference: Sorscher et al., "Beyond neural scaling laws: beating power law scaling via data pruning" (NeurIPS 2022).
#include <algorithm>

#include "core/oracle/samplers/kmeans.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

constexpr int64_t kPruningRows = 64;  // of each cluster, drawn, that move its center; all are assigned

}  // namespace

std::unique_ptr<QuerySampler> pruning_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  PAL_CHECK(settings.clusters >= 0, "oracle.clusters", settings.clusters, "give 0 (as many as classes) or more");
  return make_point_sampler(
      "pruning", point_options(settings),
      [wanted = settings.clusters, near_until = settings.pruning_near_until](const Candidates& board,
                                                                             const ClassModel& model, int64_t count) {
        const int64_t clusters = std::max<int64_t>(1, wanted > 0 ? wanted : model.classes());
        const PoolRows& pool = board.pool();
        std::vector<int64_t> ids, assigned(board.row_class().size(), 0);
        for (int64_t row : pool.rows_here()) ids.push_back(pool.samples()[row]);
        const Kmeans found = kmeans(pool.here(), ids,
                                    {.clusters = clusters,
                                     .iterations = 10,
                                     .per_cluster = kPruningRows,
                                     .seed = board.round().seed,
                                     .round = board.round().round},
                                    pool.comm());
        std::vector<float> similarity(assigned.size(), 0);
        for (size_t k = 0; k < ids.size(); ++k) {
          assigned[pool.rows_here()[k]] = found.assigned[k];
          similarity[pool.rows_here()[k]] = found.similarity[k];
        }
        pool.complete(assigned);
        pool.complete(similarity);
        double known = 0;
        for (const PointClass& c : board.classes()) known += static_cast<double>(c.known);
        const bool near = known < near_until * static_cast<double>(std::max<size_t>(1, board.classes().size()));

        // The first to be asked last.
        std::vector<std::vector<int64_t>> cluster(static_cast<size_t>(clusters));
        for (int64_t p = 0; p < board.count(); ++p) {
          if (board.free(p)) cluster[assigned[board.points()[p].row]].push_back(p);
        }
        for (std::vector<int64_t>& points : cluster) {
          std::sort(points.begin(), points.end(), [&](int64_t a, int64_t b) {
            const float left = similarity[board.points()[a].row], right = similarity[board.points()[b].row];
            return left != right ? (left < right) == near : a > b;
          });
        }
        std::vector<int64_t> out;
        for (bool any = true; any && static_cast<int64_t>(out.size()) < count;) {
          any = false;
          for (std::vector<int64_t>& points : cluster) {
            if (points.empty()) continue;
            out.push_back(points.back());
            points.pop_back();
            any = true;
          }
        }
        return out;
      });
}

}  // namespace pal::oracle
