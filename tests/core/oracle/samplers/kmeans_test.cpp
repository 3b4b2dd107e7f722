// kmeans: the same centers for any number of ranks and threads, planted clusters, and cases without rows.
#include "core/oracle/samplers/kmeans.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "kernels/base/philox.h"
#include "tests/core/comm/thread_comm.h"

namespace pal::oracle {
namespace {

// Unit rows around `clusters` random directions.
at::Tensor cloud(int64_t n, int64_t clusters, int64_t dims, double noise, uint64_t seed) {
  at::Tensor rows = at::zeros({n, dims}, at::kFloat);
  for (int64_t i = 0; i < n; ++i) {
    Random center(seed, Purpose::bench, 1, static_cast<uint64_t>(i % clusters)),
        random(seed, Purpose::bench, 2, static_cast<uint64_t>(i));
    for (int64_t k = 0; k < dims; ++k)
      rows.data_ptr<float>()[i * dims + k] = static_cast<float>(center.normal() + noise * random.normal());
  }
  return rows / rows.norm(2, 1, true);
}

std::vector<int64_t> ids_of(int64_t n) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(7 * i + 3);
  return ids;
}

TEST(Kmeans, IsTheSameForAnyNumberOfRanksAndOrder) {
  const at::Tensor rows = cloud(700, 9, 20, 0.6, 1);
  const std::vector<int64_t> ids = ids_of(700);
  for (int64_t per_cluster : {0, 20}) {
    const KmeansOptions options{.clusters = 12, .iterations = 15, .per_cluster = per_cluster, .seed = 5, .round = 2};
    const Kmeans whole = kmeans(rows, ids, options, *comm::make_local_comm());
    for (int ranks : {2, 3}) {
      std::mutex mutex;
      comm::run_ranks(ranks, [&](comm::Comm& comm) {
        // Uneven shares, and rows dealt out in turn: rank r has the rows i with i % (W + 1) == r, rank 0 the rest too.
        std::vector<int64_t> mine, mine_ids;
        for (int64_t i = 0; i < 700; ++i) {
          const int64_t owner = i % (comm.size() + 1) == comm.size() ? 0 : i % (comm.size() + 1);
          if (owner == comm.rank()) mine.push_back(i), mine_ids.push_back(ids[i]);
        }
        const Kmeans part = kmeans(rows.index_select(0, at::tensor(mine, at::kLong)), mine_ids, options, comm);
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(at::equal(part.centers, whole.centers)) << "bit for bit";
        for (size_t k = 0; k < mine.size(); ++k) EXPECT_EQ(part.assigned[k], whole.assigned[mine[k]]);
      });
    }
  }
}

TEST(Kmeans, FindsPlantedClusters) {
  const at::Tensor rows = cloud(600, 6, 32, 0.1, 3);
  const Kmeans found = kmeans(rows, ids_of(600), {.clusters = 12, .iterations = 30, .per_cluster = 0, .seed = 1},
                              *comm::make_local_comm());
  // Twice as many clusters as directions: no cluster mixes two directions, and every row is near its center.
  std::vector<std::set<int64_t>> directions(12);
  for (int64_t i = 0; i < 600; ++i) {
    directions[found.assigned[i]].insert(i % 6);
    EXPECT_GT(found.similarity[i], 0.9f);
    EXPECT_NEAR(rows[i].dot(found.centers[found.assigned[i]]).item<float>(), found.similarity[i], 1e-5);
  }
  for (const auto& d : directions) EXPECT_LE(d.size(), 1u);
}

TEST(Kmeans, FillsEmptyClustersAndTakesFewRows) {
  at::Tensor rows = at::zeros({40, 3}, at::kFloat);
  for (int64_t i = 0; i < 40; ++i) rows[i][i < 37 ? 0 : i % 3] = 1;  // 38 rows are the same: most centers begin equal
  const Kmeans found = kmeans(rows, ids_of(40), {.clusters = 3, .iterations = 20, .per_cluster = 0, .seed = 2},
                              *comm::make_local_comm());
  for (float s : found.similarity) EXPECT_NEAR(s, 1, 1e-6);
  const Kmeans few = kmeans(rows.narrow(0, 0, 2), ids_of(2), {.clusters = 5, .seed = 2}, *comm::make_local_comm());
  EXPECT_EQ(few.centers.size(0), 2);
  EXPECT_EQ(kmeans(rows.narrow(0, 0, 0), {}, {.clusters = 5, .seed = 2}, *comm::make_local_comm()).assigned.size(), 0u);
}

}  // namespace
}  // namespace pal::oracle
