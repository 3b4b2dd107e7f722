// assignment: pass after pass what a look at all pairs finds, with fewer products.
#include "core/oracle/assignment.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/oracle/products.h"
#include "kernels/base/philox.h"

namespace pal {
namespace {

at::Tensor unit_rows(int64_t n, int64_t dims, uint64_t seed, uint64_t step) {
  at::Tensor x = at::empty({n, dims}, at::kFloat);
  Random random(seed, Purpose::bench, step);
  for (int64_t k = 0; k < x.numel(); ++k) x.data_ptr<float>()[k] = static_cast<float>(random.normal());
  return x / x.norm(2, 1, true);
}

// Centres that move a little, a lot, not at all, onto each other and onto rows; rows that are the same or nothing.
TEST(Assignment, IsThatOfALookAtAllPairs) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const int64_t n = 300, clusters = seed == 0 ? 1 : seed == 1 ? 2 : 40, dims = seed % 2 == 0 ? 3 : 24;
    at::Tensor rows = unit_rows(n, dims, seed, 1), centres = unit_rows(clusters, dims, seed, 2);
    rows[7].zero_();
    rows[8].copy_(rows[9]);
    Assignment now(rows);
    std::vector<int64_t> before(n, -1);
    int64_t all = 0;
    for (int pass = 0; pass < 25; ++pass) {
      const bool changed = now.update(centres);
      all += n * clusters;
      const at::Tensor products = times_transposed(rows, centres);
      for (int64_t i = 0; i < n; ++i) {
        const float* p = products.const_data_ptr<float>() + i * clusters;
        const float* best = std::max_element(p, p + clusters);
        ASSERT_EQ(now.centre()[i], best - p) << "pass " << pass << ", row " << i;
        ASSERT_NEAR(now.similarity()[i], *best, 1e-6);
      }
      ASSERT_EQ(changed, now.centre() != before) << "pass " << pass;
      before = now.centre();
      for (int64_t c = 0; c < clusters; ++c) {
        switch (random.below(8)) {
          case 0: centres[c].copy_(unit_rows(1, dims, seed, 100 + pass)[0]); break;
          case 1: centres[c].copy_(centres[static_cast<int64_t>(random.below(clusters))].clone()); break;
          case 2: centres[c].copy_(rows[static_cast<int64_t>(random.below(n))]); break;
          case 3: case 4: centres[c].add_(unit_rows(1, dims, seed, 200 + pass)[0], 1e-3); break;
          default: break;
        }
        if (pass < 5) continue;   // wild at first; then a few centres wander
        if (c % 10 != 0) centres[c].copy_(unit_rows(clusters, dims, seed, 2)[c]);
      }
      centres = centres / centres.norm(2, 1, true).clamp_min(1e-20);
    }
    if (clusters == 40) EXPECT_LT(now.products(), all * 2 / 3) << "bounds that spare nothing";
  }
}

TEST(Assignment, CentresThatStandStillCostNothing) {
  const at::Tensor rows = unit_rows(200, 8, 1, 1), centres = unit_rows(10, 8, 1, 2);
  Assignment now(rows);
  EXPECT_TRUE(now.update(centres));
  const int64_t once = now.products();
  EXPECT_EQ(once, 200 * 10);
  EXPECT_FALSE(now.update(centres));
  EXPECT_LT(now.products(), once + 100) << "but for rows between two centres";
}

}  // namespace
}  // namespace pal
