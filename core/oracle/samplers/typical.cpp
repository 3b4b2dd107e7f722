// typical: k-means with a cluster for each known class and each question. Of the clusters without a known member, the
// largest first, it takes the point whose 20 nearest neighbors in the cluster are nearest.
// Reference: Hacohen et al., "Active learning on a budget: opposite strategies suit high and low budgets" (ICML 2022).
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/ops/similarity.h"
#include "core/oracle/samplers/kmeans.h"
#include "core/oracle/samplers/samplers.h"

namespace pal::oracle {
namespace {

constexpr int64_t kTypicalPoints = 32768, kTypicalClusters = 1000, kTypicalNeighbors = 20, kTypicalInCluster = 2000;

// The point of a cluster with the nearest neighbors there; of a very large cluster only the first points by draw count.
int64_t densest(const Candidates& board, std::vector<int64_t> points) {
  if (static_cast<int64_t>(points.size()) > kTypicalInCluster) {
    std::nth_element(points.begin(), points.begin() + kTypicalInCluster, points.end(),
                     [&](int64_t a, int64_t b) { return board.points()[a].draw < board.points()[b].draw; });
    points.resize(kTypicalInCluster);
    std::sort(points.begin(), points.end());
  }
  const auto n = static_cast<int64_t>(points.size());
  if (n <= 2) return points[0];
  const int64_t k = std::min(kTypicalNeighbors + 1, n);  // the first is the point itself
  const at::Tensor rows = board.point_rows(points);
  at::Tensor ids = at::empty({n, k}, at::kLong), scores = at::empty({n, k}, at::kDouble);
  ops::nearest(ids, scores, rows, {rows, {}, {}}, {}, kernels::Metric::cosine, at::get_num_threads());
  const double* s = scores.const_data_ptr<double>();
  int64_t best = 0;
  double most = -1e30;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 1; j < k; ++j) sum += s[i * k + j];
    if (sum > most) most = sum, best = i;
  }
  return points[best];
}

}  // namespace

std::unique_ptr<QuerySampler> typical_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  return make_point_sampler(
      "typical", point_options(settings), [](const Candidates& board, const ClassModel& model, int64_t count) {
        // A drawn part of the points, and all known rows of the pool beside them: they show which clusters are covered.
        std::vector<int64_t> points = free_points(board, kTypicalPoints), rows;
        for (int64_t p : points) rows.push_back(board.points()[p].row);
        for (size_t row = 0; row < board.row_class().size() && rows.size() < 2 * static_cast<size_t>(kTypicalPoints);
             ++row) {
          if (board.row_class()[row] >= 0) rows.push_back(static_cast<int64_t>(row));
        }
        if (points.empty()) return points;
        const int64_t clusters = std::min(kTypicalClusters, model.classes() + count);
        const PoolRows& pool = board.pool();
        std::vector<int64_t> here, places, ids;  // indices of `rows`, places in pool.here(), samples
        for (size_t k = 0; k < rows.size(); ++k) {
          if (const int64_t place = pool.place(rows[k]); place >= 0) {
            here.push_back(static_cast<int64_t>(k));
            places.push_back(place);
            ids.push_back(pool.samples()[rows[k]]);
          }
        }
        const Kmeans found =
            kmeans(pool.here().index_select(0, at::tensor(places, at::kLong)), ids,
                   {.clusters = clusters, .iterations = 10, .seed = board.round().seed, .round = board.round().round},
                   pool.comm());
        std::vector<int64_t> assigned(rows.size(), 0);
        for (size_t k = 0; k < here.size(); ++k) assigned[here[k]] = found.assigned[k];
        pool.complete(assigned);
        std::vector<std::vector<int64_t>> cluster(static_cast<size_t>(found.centers.size(0)));
        std::vector<int64_t> known(cluster.size(), 0);
        for (size_t k = 0; k < rows.size(); ++k) {
          if (k < points.size())
            cluster[assigned[k]].push_back(points[k]);
          else
            ++known[assigned[k]];
        }
        std::vector<int64_t> order;
        for (size_t c = 0; c < cluster.size(); ++c) order.push_back(static_cast<int64_t>(c));
        // Uncovered clusters first, the largest first; then those of which least is known.
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          if (known[a] != known[b]) return known[a] < known[b];
          return cluster[a].size() != cluster[b].size() ? cluster[a].size() > cluster[b].size() : a < b;
        });
        std::vector<int64_t> out;
        for (bool any = true; any && static_cast<int64_t>(out.size()) < count;) {
          any = false;
          for (int64_t c : order) {
            if (static_cast<int64_t>(out.size()) >= count) break;
            if (cluster[c].empty()) continue;
            const int64_t point = densest(board, cluster[c]);
            cluster[c].erase(std::find(cluster[c].begin(), cluster[c].end(), point));
            out.push_back(point);
            any = true;
          }
        }
        return out;
      });
}

}  // namespace pal::oracle
