// optim: the update rules against their formulas in double; exclusion of 1-D parameters; schedule.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/ops/named_tensors.h"
#include "core/optim/flat.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "kernels/base/error.h"

namespace pal::optim {
namespace {

// One parameter in plain vectors, for the formulas.
struct Plain {
  std::vector<double> p, b, m, v;
  bool one_dimensional;
};

std::vector<double> numbers(const at::Tensor& t) {
  const at::Tensor d = t.detach().to(at::kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

double norm(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += x * x;
  return std::sqrt(s);
}

// t counts from 1.
void plain_step(const OptimSpec& o, Plain& x, const std::vector<double>& g, double lr, int t) {
  const double decay = x.one_dimensional ? 0 : o.weight_decay;
  std::vector<double> u(g.size());
  for (size_t i = 0; i < g.size(); ++i) u[i] = g[i] + decay * x.p[i];
  double q = 1;
  if (o.kind == OptimizerKind::lars && !x.one_dimensional && norm(x.p) > 0 && norm(u) > 0)
    q = o.lars_eta * norm(x.p) / norm(u);
  for (size_t i = 0; i < g.size(); ++i) {
    if (o.kind == OptimizerKind::adamw) {
      x.p[i] -= lr * decay * x.p[i];
      x.m[i] = o.beta1 * x.m[i] + (1 - o.beta1) * g[i];
      x.v[i] = o.beta2 * x.v[i] + (1 - o.beta2) * g[i] * g[i];
      const double m = x.m[i] / (1 - std::pow(o.beta1, t)), v = x.v[i] / (1 - std::pow(o.beta2, t));
      x.p[i] -= lr * m / (std::sqrt(v) + o.epsilon);
    } else {
      x.b[i] = o.momentum * x.b[i] + q * u[i];
      x.p[i] -= lr * x.b[i];
    }
  }
}

ops::NamedTensors parameters(at::ScalarType type) {
  ops::NamedTensors list = {{"weight", at::randn({37, 41}, at::kDouble)},
                            {"bias", at::randn({53}, at::kDouble)},
                            {"conv", at::randn({8, 5, 3, 3}, at::kDouble)},
                            {"zero", at::zeros({6, 7}, at::kDouble)}};
  for (auto& [name, t] : list) t = t.to(type).requires_grad_();
  return list;
}

OptimSpec optim_spec_of(const std::string& kind) {
  OptimSpec spec;
  spec.kind = config::choice_of(kOptimizers, kind);
  spec.weight_decay = 0.05;
  return spec;
}

TEST(Optim, EqualsItsFormula) {
  for (const char* kind : {"sgd", "lars", "adamw"})
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      at::manual_seed(1);
      SCOPED_TRACE(testing::Message() << kind << ", " << type << ", seed 1");
      const OptimSpec spec = optim_spec_of(kind);
      const ops::NamedTensors list = parameters(type);
      std::vector<Plain> plain;
      for (const auto& [name, t] : list) {
        const std::vector<double> none(t.numel());
        plain.push_back({numbers(t), none, none, none, t.dim() == 1});
      }
      const auto optimizer = make_optimizer(spec, list);
      for (int t = 1; t <= 5; ++t) {
        const double lr = 0.1 / t;
        for (size_t k = 0; k < list.size(); ++k) {
          list[k].second.mutable_grad() = at::randn_like(list[k].second.detach());
          plain_step(spec, plain[k], numbers(list[k].second.grad()), lr, t);
        }
        optimizer->step(lr);
      }
      for (size_t k = 0; k < list.size(); ++k) {
        SCOPED_TRACE(list[k].first);
        const std::vector<double> ours = numbers(list[k].second);
        for (size_t i = 0; i < ours.size(); ++i)
          ASSERT_NEAR(ours[i], plain[k].p[i], type == at::kDouble ? 1e-13 : 3e-6) << i;
      }
    }
}

TEST(Optim, WithAZeroGradientOnlyDecayMovesParameters) {
  for (const char* kind : {"sgd", "lars", "adamw"}) {
    at::manual_seed(2);
    SCOPED_TRACE(testing::Message() << kind << ", seed 2");
    const ops::NamedTensors list = parameters(at::kDouble);
    std::vector<at::Tensor> before;
    for (const auto& [name, t] : list) {
      before.push_back(t.detach().clone());
      t.mutable_grad() = at::zeros_like(t.detach());
    }
    make_optimizer(optim_spec_of(kind), list)->step(0.1);
    EXPECT_FALSE(at::equal(list[0].second, before[0]));
    EXPECT_TRUE(at::equal(list[1].second, before[1]));
    EXPECT_TRUE(at::equal(list[3].second, before[3]));
  }
}

TEST(Optim, ANewOptimizerContinuesFromItsState) {
  for (const char* kind : {"sgd", "lars", "adamw"}) {
    at::manual_seed(3);
    SCOPED_TRACE(testing::Message() << kind << ", seed 3");
    const ops::NamedTensors a = parameters(at::kFloat);
    ops::NamedTensors b;
    for (const auto& [name, t] : a) b.emplace_back(name, t.detach().clone().requires_grad_());
    auto one = make_optimizer(optim_spec_of(kind), a);
    for (int t = 0; t < 4; ++t) {
      auto two = make_optimizer(optim_spec_of(kind), b);  // recreated in every step
      const ops::NamedTensors from = one->state(), into = two->state();
      ASSERT_EQ(from.size(), into.size());
      for (size_t k = 0; k < from.size(); ++k) {
        EXPECT_EQ(from[k].first, into[k].first);
        into[k].second.copy_(from[k].second);
      }
      for (size_t k = 0; k < a.size(); ++k) {
        a[k].second.mutable_grad() = at::randn_like(a[k].second.detach());
        b[k].second.mutable_grad() = a[k].second.grad().clone();
      }
      one->step(0.1);
      two->step(0.1);
      for (size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(at::equal(a[k].second, b[k].second)) << a[k].first;
    }
  }
}

TEST(Optim, IsTheSameForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  std::vector<at::Tensor> results;
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    at::manual_seed(4);
    SCOPED_TRACE("seed 4");
    const ops::NamedTensors list = {{"weight", at::randn({300, 500}).requires_grad_()}};
    list[0].second.mutable_grad() = at::randn({300, 500});
    make_optimizer(optim_spec_of("lars"), list)->step(0.1);
    results.push_back(list[0].second.detach());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(results[0], results[1]));
}

// The bits of a parameter do not depend on its address, its neighbors or the instruction set.
TEST(Optim, FlatParametersHaveTheBitsOfPlainLoops) {
  at::manual_seed(5);
  SCOPED_TRACE("seed 5");
  for (const char* kind : {"sgd", "lars", "adamw"}) {
    SCOPED_TRACE(kind);
    const OptimSpec spec = optim_spec_of(kind);
    ops::NamedTensors flat, alone;
    for (const auto& [name, t] : parameters(at::kFloat)) {
      flat.emplace_back(name, t);
      alone.emplace_back(name, t.detach().clone().requires_grad_());
    }
    flat.emplace_back("long", at::randn({5, 40001}).requires_grad_());
    alone.emplace_back("long", flat.back().second.detach().clone().requires_grad_());
    const auto buckets = flatten(flat, 1 << 12);
    EXPECT_GT(buckets.size(), 1u);
    const auto together = make_optimizer(spec, flat);
    std::vector<std::unique_ptr<Optimizer>> one_by_one;
    for (const auto& named : alone) one_by_one.push_back(make_optimizer(spec, {named}));
    for (int t = 0; t < 3; ++t) {
      for (size_t k = 0; k < flat.size(); ++k) {
        const at::Tensor grad = at::randn_like(alone[k].second.detach());
        alone[k].second.mutable_grad() = grad;
        for (const FlatBucket& b : buckets)
          for (size_t i = 0; i < b.parameters.size(); ++i)
            if (b.parameters[i].is_same(flat[k].second))
              flat[k].second.mutable_grad() = b.gradients.views[i].copy_(grad);
      }
      together->step(0.1);
      for (const auto& o : one_by_one) o->step(0.1);
    }
    for (size_t k = 0; k < flat.size(); ++k) EXPECT_TRUE(at::equal(flat[k].second, alone[k].second)) << flat[k].first;
  }
}

// Backward reaches the first parameters last, when no computation is left to overlap their all-reduce.
TEST(Flat, BucketsAreFullFirstAndSmallAtTheEnd) {
  constexpr int64_t kMegabyte = 1 << 20;
  ops::NamedTensors list;
  for (int k = 0; k < 60; ++k)
    list.emplace_back(std::to_string(k), at::zeros({kMegabyte / 8}));  // half a megabyte each
  std::vector<int64_t> sizes;
  size_t parameters = 0;
  for (const FlatBucket& b : flatten(list, 12 * kMegabyte)) {
    sizes.push_back(b.gradients.flat.nbytes());
    parameters += b.parameters.size();
  }
  EXPECT_EQ(parameters, list.size());
  EXPECT_EQ(sizes.front(), 12 * kMegabyte);
  EXPECT_LE(sizes.back(), kMegabyte);
  EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
  EXPECT_LE(sizes.size(), 7u);
}

TEST(Optim, AnUnknownKindIsRefused) { EXPECT_THROW(optim_spec_of("adam"), Error); }

TEST(Schedule, WarmsUpAndFollowsTheCosine) {
  Schedule s;
  s.peak = 2;
  s.warmup_steps = 10;
  s.total_steps = 110;
  s.final_ratio = 0.01;
  EXPECT_DOUBLE_EQ(s.at(0), 0.2);
  EXPECT_DOUBLE_EQ(s.at(9), 2);
  EXPECT_DOUBLE_EQ(s.at(10), 2);
  EXPECT_NEAR(s.at(60), 2 * (0.5 + 0.01 * 0.5), 1e-12);
  EXPECT_NEAR(s.at(110), 0.02, 1e-12);
  EXPECT_NEAR(s.at(1000), 0.02, 1e-12);
  for (int64_t t = 10; t < 109; ++t) EXPECT_GT(s.at(t), s.at(t + 1));
  s.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(s.at(0), 2);
}

}  // namespace
}  // namespace pal::optim
