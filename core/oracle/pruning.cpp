// pruning: clusters in turn; easy points first, hard ones once the classes are known.
#include <algorithm>

#include "core/oracle/kmeans.h"
#include "core/oracle/samplers.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

constexpr int64_t kPruningRows = 64;   // of each cluster, drawn, that move its centre; all are assigned

}  // namespace

std::unique_ptr<QuerySampler> make_pruning(const PointOptions& options, const PruningOptions& pruning) {
  PAL_CHECK(pruning.clusters >= 0, "oracle.clusters", pruning.clusters, "give 0 (as many as classes) or more");
  return make_point_sampler("pruning", options, [pruning](const Board& board, const ClassModel& model, int64_t count) {
    const int64_t clusters = std::max<int64_t>(1, pruning.clusters > 0 ? pruning.clusters : model.classes());
    const auto comm = make_local_comm();
    const Kmeans found = kmeans(board.rows(), board.samples(),
                                {.clusters = clusters, .iterations = 10, .per_cluster = kPruningRows, .seed = board.round().seed, .round = board.round().round}, *comm);
    double known = 0;
    for (const PointClass& c : board.classes()) known += static_cast<double>(c.known);
    const bool near = known < pruning.near_until * static_cast<double>(std::max<size_t>(1, board.classes().size()));

    // The first to be asked last.
    std::vector<std::vector<int64_t>> cluster(static_cast<size_t>(clusters));
    for (int64_t p = 0; p < board.count(); ++p) {
      if (board.free(p)) cluster[found.assigned[board.points()[p].row]].push_back(p);
    }
    for (std::vector<int64_t>& points : cluster) {
      std::sort(points.begin(), points.end(), [&](int64_t a, int64_t b) {
        const float left = found.similarity[board.points()[a].row], right = found.similarity[board.points()[b].row];
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

}  // namespace pal
