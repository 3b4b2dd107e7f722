// assignment: in every pass the same result as a search over all pairs, with fewer products.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/oracle/samplers/kmeans.h"
#include "core/oracle/samplers/products.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

at::Tensor unit_rows(int64_t n, int64_t dims, uint64_t seed, uint64_t step) {
  at::Tensor x = at::empty({n, dims}, at::kFloat);
  Random random(seed, Purpose::bench, step);
  for (int64_t k = 0; k < x.numel(); ++k) x.data_ptr<float>()[k] = static_cast<float>(random.normal());
  return x / x.norm(2, 1, true);
}

// A pass of `now` against all products.
void expect_right(const Assignment& now, const at::Tensor& rows, const at::Tensor& centers) {
  const int64_t clusters = centers.size(0);
  const at::Tensor products = times_transposed(rows, centers);
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const float* p = products.const_data_ptr<float>() + i * clusters;
    const float* best = std::max_element(p, p + clusters);
    ASSERT_EQ(now.center()[i], best - p) << "row " << i;
    ASSERT_NEAR(now.similarity()[i], *best, 1e-6);
  }
}

// Centers that move a little, a lot, not at all, onto each other and onto rows; rows that are the same or nothing.
TEST(Assignment, EqualsASearchOverAllPairs) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const int64_t n = 300, clusters = seed == 0 ? 1 : seed == 1 ? 2 : 40, dims = seed % 2 == 0 ? 3 : 24;
    at::Tensor rows = unit_rows(n, dims, seed, 1);
    const at::Tensor home = unit_rows(clusters, dims, seed, 2);
    at::Tensor centers = home.clone();
    rows[7].zero_();
    rows[8].copy_(rows[9]);
    Assignment now(rows);
    std::vector<int64_t> before(n, -1);
    int64_t all = 0;
    for (int pass = 0; pass < 20; ++pass) {
      SCOPED_TRACE("pass " + std::to_string(pass));
      const bool changed = now.update(centers);
      all += n * clusters;
      expect_right(now, rows, centers);
      ASSERT_EQ(changed, now.center() != before);
      if (HasFatalFailure()) return;
      before = now.center();
      if (pass >= 5) centers.copy_(home);  // large moves at first; then only a few centers move
      const at::Tensor elsewhere = unit_rows(clusters, dims, seed, 100 + pass);
      for (int64_t c = 0; c < clusters; c += pass < 5 ? 1 : 10) {
        switch (random.below(5)) {
          case 0:
            centers[c].copy_(elsewhere[c]);
            break;
          case 1:
            centers[c].copy_(home[static_cast<int64_t>(random.below(clusters))]);
            break;
          case 2:
            centers[c].copy_(rows[static_cast<int64_t>(random.below(n))]);
            break;
          case 3:
            centers[c].add_(elsewhere[c], 1e-3);
            break;
          default:
            break;
        }
      }
      centers = centers / centers.norm(2, 1, true).clamp_min(1e-20);
    }
    if (clusters == 40) {
      EXPECT_LT(now.products(), all * 2 / 3) << "the bounds save products";
    }
  }
}

// All centers move slowly in their own directions: a single step changes little, many steps change much.
TEST(Assignment, SmallStepsAddUp) {
  const at::Tensor rows = unit_rows(300, 6, 1, 1), way = unit_rows(20, 6, 1, 3);
  at::Tensor centers = unit_rows(20, 6, 1, 2);
  Assignment now(rows);
  const int passes = 60;
  for (int pass = 0; pass < passes; ++pass) {
    SCOPED_TRACE("pass " + std::to_string(pass));
    now.update(centers);
    expect_right(now, rows, centers);
    if (HasFatalFailure()) return;
    centers = centers + 0.02 * way;
    centers = centers / centers.norm(2, 1, true);
  }
  EXPECT_LT(now.products(), passes * 300 * 20 * 2 / 3) << "the bounds save products";
}

TEST(Assignment, CentersThatDoNotMoveNeedNoProducts) {
  const at::Tensor rows = unit_rows(200, 8, 1, 1), centers = unit_rows(10, 8, 1, 2);
  Assignment now(rows);
  EXPECT_TRUE(now.update(centers));
  const int64_t once = now.products();
  EXPECT_EQ(once, 200 * 10);
  EXPECT_FALSE(now.update(centers));
  EXPECT_LT(now.products(), once + 100) << "but for rows between two centers";
}

}  // namespace
}  // namespace pal::oracle
