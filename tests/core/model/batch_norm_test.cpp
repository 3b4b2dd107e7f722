// batch_norm: against PyTorch in double, finite differences, any split of the rows over ranks, pending statistics.
#include "core/model/batch_norm.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/core/comm/thread_comm.h"

namespace pal::model {
namespace {

enum class Shape { rows, planes, channels_last };

at::Tensor images(Shape shape, int64_t n, int64_t channels, int64_t height, int64_t width) {
  if (shape == Shape::rows) return at::randn({n * height * width, channels}, at::kDouble);
  const at::Tensor x = at::randn({n, channels, height, width}, at::kDouble);
  return shape == Shape::planes ? x : x.contiguous(at::MemoryFormat::ChannelsLast);
}

std::shared_ptr<BatchNorm> make(int64_t channels, at::ScalarType dtype = at::kDouble, comm::Comm* comm = nullptr) {
  BatchNormOptions options;
  options.comm = comm;
  options.dtype = dtype;
  return std::make_shared<BatchNorm>(channels, options);
}

struct Passed {
  at::Tensor y, dx, dresidual, dweight, dbias;
};

// Forward and backward of act(bn(x) + residual) by our module.
Passed pass(BatchNorm& norm, const at::Tensor& x, const at::Tensor& dy, Activation act,
            const at::Tensor& residual = {}) {
  const at::Tensor leaf = x.detach().clone().requires_grad_();
  const at::Tensor other = residual.defined() ? residual.detach().clone().requires_grad_() : at::Tensor();
  norm.zero_grad();
  const at::Tensor y = norm.forward(leaf, act, other);
  y.backward(dy);
  return {y.detach(), leaf.grad(), other.defined() ? other.grad() : other, norm.weight.grad().clone(),
          norm.bias.grad().clone()};
}

// The same with PyTorch's operators.
Passed reference(BatchNorm& norm, const at::Tensor& x, const at::Tensor& dy, Activation act,
                 const at::Tensor& residual = {}) {
  const at::Tensor leaf = x.detach().clone().requires_grad_();
  const at::Tensor other = residual.defined() ? residual.detach().clone().requires_grad_() : at::Tensor();
  const at::Tensor w = norm.weight.detach().clone().requires_grad_(), b = norm.bias.detach().clone().requires_grad_();
  at::Tensor mean = norm.running_mean.clone(), var = norm.running_var.clone();
  at::Tensor y = std::get<0>(at::native_batch_norm(leaf, w, b, mean, var, norm.is_training(), 0.1, 1e-5));
  if (other.defined()) y = y + other;
  if (act == Activation::relu) y = at::relu(y);
  y.backward(dy);
  return {y.detach(), leaf.grad(), other.defined() ? other.grad() : other, w.grad(), b.grad()};
}

void expect_close(const Passed& ours, const Passed& theirs, double tolerance) {
  const auto close = [&](const at::Tensor& a, const at::Tensor& b, const char* what) {
    ASSERT_EQ(a.defined(), b.defined()) << what;
    if (a.defined()) {
      EXPECT_LT((a - b).abs().max().item<double>(), tolerance * (1 + b.abs().max().item<double>())) << what;
    }
  };
  close(ours.y, theirs.y, "y");
  close(ours.dx, theirs.dx, "dx");
  close(ours.dresidual, theirs.dresidual, "dresidual");
  close(ours.dweight, theirs.dweight, "dweight");
  close(ours.dbias, theirs.dbias, "dbias");
}

TEST(BatchNorm, EqualsPyTorchInEveryLayout) {
  at::manual_seed(1);
  for (const Shape shape : {Shape::rows, Shape::planes, Shape::channels_last})
    for (const int64_t channels : {1, 7, 45})
      for (const Activation act : {Activation::none, Activation::relu})
        for (const bool with_residual : {false, true}) {
          SCOPED_TRACE(testing::Message() << "seed 1, shape " << int(shape) << ", channels " << channels << ", relu "
                                          << int(act) << ", residual " << with_residual);
          auto norm = make(channels);
          norm->weight.data().uniform_(-1, 1);
          norm->bias.data().uniform_(-1, 1);
          const at::Tensor x = images(shape, 5, channels, 7, 9) * 2 + 3, dy = at::randn_like(x);
          const at::Tensor residual = with_residual ? at::randn_like(x) : at::Tensor();
          expect_close(pass(*norm, x, dy, act, residual), reference(*norm, x, dy, act, residual), 1e-12);
          norm->eval();
          norm->running_mean.uniform_(-1, 1);
          norm->running_var.uniform_(.5, 2);
          expect_close(pass(*norm, x, dy, act, residual), reference(*norm, x, dy, act, residual), 1e-12);
        }
}

TEST(BatchNorm, GradientIsThatOfFiniteDifferences) {
  at::manual_seed(2);
  SCOPED_TRACE("seed 2");
  auto norm = make(3);
  norm->weight.data().uniform_(.5, 1.5);
  const at::Tensor x = at::randn({4, 3, 2, 3}, at::kDouble), dy = at::randn_like(x);
  const Passed ours = pass(*norm, x, dy, Activation::none);
  const double h = 1e-6;
  for (int64_t e = 0; e < x.numel(); e += 5) {
    at::Tensor up = x.clone(), down = x.clone();
    up.view({-1})[e] += h;
    down.view({-1})[e] -= h;
    const double slope = ((norm->forward(up) - norm->forward(down)) * dy).sum().item<double>() / (2 * h);
    EXPECT_NEAR(ours.dx.reshape({-1})[e].item<double>(), slope, 1e-7);
  }
}

// Uneven slices; one rank has no rows.
const std::vector<std::vector<int64_t>> kCuts = {{0, 10}, {0, 4, 10}, {0, 7, 7, 10}};

template <class Check>
void with_every_cut(at::ScalarType dtype, const at::Tensor& x, const at::Tensor& dy, const Check& check) {
  auto one = make(x.size(1), dtype);
  const Passed whole = pass(*one, x, dy, Activation::relu);
  one->commit();
  for (const auto& cut : kCuts) {
    const int ranks = static_cast<int>(cut.size()) - 1;
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    std::vector<Passed> parts(ranks);
    comm::run_ranks(ranks, [&](comm::ThreadComm& comm) {
      const int r = comm.rank();
      auto norm = make(x.size(1), dtype, &comm);
      parts[r] = pass(*norm, x.slice(0, cut[r], cut[r + 1]), dy.slice(0, cut[r], cut[r + 1]), Activation::relu);
      norm->commit();
      EXPECT_TRUE(at::allclose(norm->running_mean, one->running_mean, 1e-6, 0));
      EXPECT_TRUE(at::allclose(norm->running_var, one->running_var, 1e-6, 0));
    });
    Passed joined = parts[0];
    for (int r = 1; r < ranks; ++r) {
      joined.y = at::cat({joined.y, parts[r].y});
      joined.dx = at::cat({joined.dx, parts[r].dx});
      joined.dweight += parts[r].dweight;
      joined.dbias += parts[r].dbias;
    }
    check(joined, whole);
  }
}

TEST(BatchNorm, IsTheSameForAnyNumberOfRanks) {
  for (const Shape shape : {Shape::planes, Shape::channels_last}) {
    at::manual_seed(3);
    SCOPED_TRACE(testing::Message() << "seed 3, shape " << int(shape));
    const at::Tensor x = images(shape, 10, 19, 5, 5), dy = at::randn_like(x);
    with_every_cut(at::kDouble, x, dy, [](const Passed& a, const Passed& b) { expect_close(a, b, 1e-13); });
    // In float32 the statistics are rounded once from fp64, so the rows are bitwise equal.
    with_every_cut(at::kFloat, x.to(at::kFloat), dy.to(at::kFloat), [](const Passed& a, const Passed& b) {
      EXPECT_TRUE(at::equal(a.y, b.y));
      EXPECT_TRUE(at::equal(a.dx, b.dx));
      expect_close(a, b, 1e-6);
    });
  }
}

TEST(BatchNorm, ALargeMeanLosesNoDigits) {
  for (const Shape shape : {Shape::rows, Shape::planes, Shape::channels_last}) {
    at::manual_seed(4);
    SCOPED_TRACE(testing::Message() << "seed 4, shape " << int(shape));
    const at::Tensor x = (images(shape, 10, 6, 8, 8) + 1e4).to(at::kFloat), dy = at::randn_like(x);
    auto norm = make(6, at::kFloat), exact = make(6);
    const Passed ours = pass(*norm, x, dy, Activation::none);
    // The reference gets the same float32 inputs, so the difference is our arithmetic.
    expect_close(ours, reference(*exact, x.to(at::kDouble), dy.to(at::kDouble), Activation::none), 1e-6);
    if (shape != Shape::rows)
      with_every_cut(at::kFloat, x, dy, [](const Passed& a, const Passed& b) { EXPECT_TRUE(at::equal(a.y, b.y)); });
  }
}

TEST(BatchNorm, OneCollectiveEachWayAndNoneInEvaluation) {
  comm::run_ranks(2, [](comm::ThreadComm& comm) {
    auto norm = make(4, at::kFloat, &comm);
    const at::Tensor x = at::rand({3, 4}), dy = at::rand({3, 4});
    pass(*norm, x, dy, Activation::relu);
    EXPECT_EQ(comm.calls(), 2);
    pass(*norm, x + 1000, dy, Activation::relu);  // |mean| ≫ std: one more in forward
    EXPECT_EQ(comm.calls(), 5);
    norm->eval();
    pass(*norm, x, dy, Activation::relu);
    EXPECT_EQ(comm.calls(), 5);
  });
}

TEST(BatchNorm, RunningStatisticsWaitForCommit) {
  at::manual_seed(5);
  SCOPED_TRACE("seed 5");
  auto norm = make(5);
  const at::Tensor a = at::randn({9, 5}, at::kDouble), b = at::randn({9, 5}, at::kDouble) + 2;
  at::Tensor mean = at::zeros({5}, at::kDouble), var = norm->running_var.clone();
  norm->forward(a);
  norm->forward(b);
  EXPECT_TRUE(at::equal(norm->running_mean, mean));
  discard_batch_norm(*norm);
  commit_batch_norm(*norm);
  EXPECT_TRUE(at::equal(norm->running_mean, mean));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 0);

  for (const at::Tensor& x : {a, b}) {  // two forward passes in one step
    norm->forward(x);
    at::native_batch_norm(x, norm->weight, norm->bias, mean, var, true, 0.1, 1e-5);
  }
  commit_batch_norm(*norm);
  EXPECT_TRUE(at::allclose(norm->running_mean, mean, 1e-12, 1e-14));
  EXPECT_TRUE(at::allclose(norm->running_var, var, 1e-12, 1e-14));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 2);
}

TEST(BatchNorm, NonFiniteInputStaysNonFinite) {
  auto norm = make(2, at::kFloat);
  at::Tensor x = at::rand({4, 2});
  x[1][0] = NAN;
  const at::Tensor y = norm->forward(x, Activation::relu);
  EXPECT_TRUE(y.select(1, 0).isnan().all().item<bool>());
  EXPECT_FALSE(y.select(1, 1).isnan().any().item<bool>());
}

TEST(BatchNorm, OneRowIsRefused) {
  auto norm = make(2);
  EXPECT_THROW(norm->forward(at::zeros({1, 2}, at::kDouble)), Error);
}

}  // namespace
}  // namespace pal::model
