// grad_sync: gradients are views into the buckets, sums are exact on small integers, and non-finite values are seen.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "dist/grad_sync.h"
#include "tests/dist/mpi_world.h"

namespace pal {
namespace {

TEST(GradSync, SumsEveryParameterOverRanks) {
  Comm& comm = test_world().bulk();
  NamedTensors p = {{"a", at::zeros({3, 4}).requires_grad_(true)},
                    {"b", at::zeros({2, 3, 5, 5}).to(at::MemoryFormat::ChannelsLast).detach().requires_grad_(true)},
                    {"c", at::zeros({7}).requires_grad_(true)}};
  for (int64_t bucket : {16, 400, 1 << 20}) {   // smaller than any parameter, between, larger than all
    GradSync sync(p, comm, bucket);
    EXPECT_EQ(sync.bytes(), 4 * (12 + 150 + 7));
    for (int step = 0; step < 2; ++step) {       // the second step must not see the first
      sync.zero();
      for (auto& [name, t] : p) (t * at::arange(t.numel(), at::kFloat).reshape(t.sizes()) * (comm.rank() + 1)).sum().backward();
      sync.sum();
      for (auto& [name, t] : p) {
        const int ranks = comm.size() * (comm.size() + 1) / 2;
        EXPECT_TRUE(at::equal(t.grad(), at::arange(t.numel(), at::kFloat).reshape(t.sizes()) * ranks)) << name << " " << bucket;
        EXPECT_EQ(t.grad().strides(), t.strides()) << name;
      }
      EXPECT_TRUE(sync.finite());
    }
  }
}

TEST(GradSync, OneRanksNanIsSeenByAll) {
  Comm& comm = test_world().bulk();
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    for (at::ScalarType type : {at::kFloat, at::kDouble}) {
      NamedTensors p = {{"a", at::zeros({9000}, type).requires_grad_(true)}};
      GradSync sync(p, comm);
      sync.zero();
      if (comm.rank() == comm.size() - 1) p[0].second.mutable_grad()[8999] = bad;
      sync.sum();
      EXPECT_FALSE(sync.finite());
    }
  }
}

}  // namespace
}  // namespace pal
