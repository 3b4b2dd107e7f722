// grad_sync: sums of small integers are exact for any order of the hooks, unused parameters count as zero, several
// backward passes add up, bfloat16 is rounded as documented, and non-finite values are detected.
#include "dist/train/grad_sync.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "core/ops/named_tensors.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

ops::NamedTensors three_parameters() {
  return {{"a", at::ones({3, 4}).requires_grad_(true)},
          {"b", at::ones({2, 3, 5, 5}).to(at::MemoryFormat::ChannelsLast).detach().requires_grad_(true)},
          {"c", at::ones({7}).requires_grad_(true)}};
}
at::Tensor counting(const at::Tensor& like) { return at::arange(like.numel(), at::kFloat).reshape(like.sizes()); }
// Σ_r (r + 1): what the ranks' shares add up to.
int rank_sum(const comm::Comm& comm) { return comm.size() * (comm.size() + 1) / 2; }

// A scalar whose gradient in each parameter is (rank + 1) · 0, 1, 2, …; hooks fire in another order on every rank.
at::Tensor scalar_of(const ops::NamedTensors& p, const comm::Comm& comm) {
  at::Tensor total = at::zeros({});
  for (size_t k = 0; k < p.size(); ++k) {
    const at::Tensor& t = p[(k + comm.rank()) % p.size()].second;
    total = total + (t * counting(t) * (comm.rank() + 1)).sum();
  }
  return total;
}

TEST(GradSync, SumsEveryParameterOverRanks) {
  comm::Comm& comm = test_world().gradients();
  const ops::NamedTensors p = three_parameters();
  for (int64_t bucket : {16, 400, 1 << 20}) {  // smaller than any parameter, between, larger than all
    GradSync sync(p, comm, {bucket});
    EXPECT_EQ(sync.bytes(), 4 * (16 + 160 + 16));  // whole cache lines
    for (const auto& [name, t] : p) EXPECT_TRUE(at::equal(t, at::ones_like(t))) << name << " is as it was";
    EXPECT_TRUE(p[1].second.is_contiguous(at::MemoryFormat::ChannelsLast));
    for (int step = 0; step < 3; ++step) {  // a step must not see the one before
      sync.begin();
      if (step != 1) sync.release();  // without it everything goes at the end
      scalar_of(p, comm).backward();
      sync.sum();
      for (const auto& [name, t] : p) {
        EXPECT_TRUE(at::equal(t.grad(), counting(t) * rank_sum(comm))) << name << " " << bucket;
        EXPECT_EQ(t.grad().strides(), t.strides()) << name;
      }
      EXPECT_TRUE(sync.finite());
      EXPECT_EQ(sync.time().seconds > 0, comm.size() > 1);
      if (comm.size() > 1) {
        EXPECT_TRUE(sync.time().hidden() >= 0 && sync.time().hidden() <= 1);
      }
    }
  }
}

TEST(GradSync, UnusedParametersCountAsZero) {
  comm::Comm& comm = test_world().gradients();
  const ops::NamedTensors p = three_parameters();
  GradSync sync(p, comm, {16});
  for (const bool used : {true, false}) {  // the second step must not find the first one's gradient
    sync.begin();
    sync.release();
    // "c" is reached by all ranks, "b" by the last one only, "a" in the first step only.
    at::Tensor total = p[2].second.sum();
    if (comm.rank() == comm.size() - 1) total = total + p[1].second.sum();
    if (used) total = total + p[0].second.sum();
    total.backward();
    sync.sum();
    EXPECT_TRUE(at::equal(p[2].second.grad(), at::full({7}, comm.size())));
    EXPECT_TRUE(at::equal(p[1].second.grad(), at::ones({2, 3, 5, 5})));
    EXPECT_TRUE(at::equal(p[0].second.grad(), at::full({3, 4}, used ? comm.size() : 0)));
  }
}

TEST(GradSync, BackwardPassesBeforeTheReleaseAddUp) {
  comm::Comm& comm = test_world().gradients();
  const ops::NamedTensors p = three_parameters();
  GradSync sync(p, comm, {400});
  sync.begin();
  for (int pass = 0; pass < 3; ++pass) {
    if (pass == 2) sync.release();
    scalar_of(p, comm).backward();
    if (pass == 1) (10 * p[0].second).sum().backward();          // a parameter that one pass reaches twice
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a bucket that was sent too early is summed by then
  }
  sync.sum();
  EXPECT_TRUE(at::equal(p[0].second.grad(), 3 * rank_sum(comm) * counting(p[0].second) + 10 * comm.size()));
  EXPECT_TRUE(at::equal(p[2].second.grad(), 3 * rank_sum(comm) * counting(p[2].second)));
}

// Buckets whose gradients are ready are summed while backward computes the others.
TEST(GradSync, AFullBucketDoesNotWaitForTheEndOfBackward) {
  comm::Comm& comm = test_world().gradients();
  if (comm.size() == 1) return;
  const ops::NamedTensors p = three_parameters();
  GradSync sync(p, comm, {16});  // a bucket each
  sync.begin();
  sync.release();
  const at::Tensor& last = p[2].second;
  const at::Tensor early = p[0].second * 1;  // its gradient is made after that of the last parameter
  bool summed = false;
  early.register_hook([&](const at::Tensor&) {
    const at::NoGradGuard no_grad;
    for (int tenth = 0; tenth < 100 && !summed; ++tenth) {
      if (tenth > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      summed = at::equal(last.grad(), at::full({7}, rank_sum(comm)));
    }
  });
  at::Tensor total = early.sum() * 1;
  for (int k = 0; k < 3; ++k)
    total = total * 1;  // backward goes from the newest operation to the oldest: the line below, then these, then early
  total = total + (last * (comm.rank() + 1)).sum();
  total.backward();
  EXPECT_TRUE(summed);
  sync.sum();
  EXPECT_GT(sync.time().seconds, 0);
}

TEST(GradSync, BFloat16RoundsSharesAndSum) {
  comm::Comm& comm = test_world().gradients();
  for (at::ScalarType type : {at::kFloat, at::kDouble}) {
    const ops::NamedTensors p = {{"a", at::zeros({5, 7}, type).requires_grad_(true)}};
    GradSync sync(p, comm, {25 << 20, GradDtype::bfloat16});
    sync.begin();
    sync.release();
    const auto share = [&](int rank) { return (at::arange(35, type) - 17).reshape({5, 7}) * (1.0 / (3 + rank)); };
    (p[0].second * share(comm.rank())).sum().backward();
    sync.sum();
    const bool rounds = type == at::kFloat && comm.size() > 1;  // float64 is not rounded; one rank sends nothing
    at::Tensor expected = at::zeros({5, 7}, type);
    for (int r = 0; r < comm.size(); ++r) expected += rounds ? share(r).to(at::kBFloat16).to(type) : share(r);
    if (rounds) expected = expected.to(at::kBFloat16).to(type);
    EXPECT_LE((p[0].second.grad() - expected).abs().max().item<double>(), rounds ? 0 : 1e-14);
  }
}

TEST(GradSync, ANanOfOneRankIsDetectedOnAll) {
  comm::Comm& comm = test_world().gradients();
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                     -std::numeric_limits<double>::infinity()}) {
    for (const auto& [type, wire] :
         {std::pair{at::kFloat, GradDtype::full}, {at::kDouble, GradDtype::full}, {at::kFloat, GradDtype::bfloat16}}) {
      const ops::NamedTensors p = {{"a", at::ones({9000}, type).requires_grad_(true)},
                                   {"b", at::ones({70}, type).requires_grad_(true)}};
      GradSync sync(p, comm, {1024, wire});
      for (const bool broken : {true, false}) {  // the next step is a new one
        sync.begin();
        sync.release();
        at::Tensor slope = at::ones({9000}, type);
        if (broken && comm.rank() == comm.size() - 1) slope[8999] = bad;
        ((p[0].second * slope).sum() + p[1].second.sum()).backward();
        sync.sum();
        EXPECT_EQ(sync.finite(), !broken);
      }
    }
  }
}

}  // namespace
}  // namespace pal::dist
