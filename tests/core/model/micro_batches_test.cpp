// micro_batches: without batch norm the gradient is that of the whole batch; with it, that of the function computed in
// pieces, for any number of ranks; running statistics follow the pieces once.
#include "core/model/micro_batches.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "core/comm/rank_slices.h"
#include "core/graph/store.h"
#include "core/loss/criterion.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "kernels/base/error.h"
#include "tests/core/comm/thread_comm.h"
#include "tests/core/spec_of.h"

namespace pal::model {
namespace {

constexpr int64_t kPositions = 11;
constexpr int32_t kViews = 2;

loss::Batch batch_of(const comm::Comm& comm) {
  loss::Batch batch;
  for (int64_t p = 0; p < kPositions; ++p) batch.samples.push_back(p);
  batch.views = kViews;
  batch.rank_begin = comm::rank_slices(kPositions, comm.size());
  batch.begin = batch.rank_begin[comm.rank()];
  batch.end = batch.rank_begin[comm.rank() + 1];
  batch.graph =
      graph::build_batch_graph(graph::GraphStore(kPositions), graph::GraphKind::ssl, 0, batch.samples, kViews);
  return batch;
}

loss::Criterion loss() { return loss::make_criterion(spec_of({"loss.kind=vicreg"}).loss); }

at::Tensor all_images(std::vector<int64_t> shape) {
  at::manual_seed(3);
  shape.insert(shape.begin(), kViews * kPositions);
  return at::randn(shape, at::kDouble);
}

// This rank's rows of the global images, view-major.
at::Tensor own(const at::Tensor& images, const loss::Batch& batch) {
  std::vector<at::Tensor> views;
  for (int32_t v = 0; v < kViews; ++v)
    views.push_back(images.narrow(0, v * kPositions + batch.begin, batch.local_positions()));
  return at::cat(views);
}

TEST(MicroBatches, EqualTheWholeBatchWithoutBatchNorm) {
  SCOPED_TRACE("seed 3");
  const auto comm = comm::make_local_comm();
  const loss::Batch batch = batch_of(*comm);
  const at::Tensor x = all_images({6});
  const at::Tensor first = at::randn({6, 8}, at::kDouble).requires_grad_(),
                   second = at::randn({8, 5}, at::kDouble).requires_grad_();
  const auto encode = [&](const at::Tensor& images) { return at::mm(at::relu(at::mm(images, first)), second); };
  const at::Tensor z = encode(x);
  const loss::LossResult whole = loss()(z.detach(), batch, *comm);
  z.backward(whole.dz);
  const at::Tensor expected[] = {first.grad().clone(), second.grad().clone()};
  for (const int64_t count : {1, 2, 3, 11}) {
    SCOPED_TRACE(count);
    first.mutable_grad() = second.mutable_grad() = at::Tensor();
    const MicroBatches pieces(0, kPositions, kViews, count);
    const at::Tensor rows = pieces.forward(encode, x);
    EXPECT_FALSE(rows.requires_grad());
    EXPECT_LE((rows - z).abs().max().item<double>(), 1e-12);
    const loss::LossResult result = loss()(rows, batch, *comm);
    EXPECT_NEAR(result.value, whole.value, 1e-12 * whole.value);
    int called = 0;
    pieces.backward(encode, x, result.dz, [&] { ++called; });
    EXPECT_EQ(called, 1);
    EXPECT_LE((first.grad() - expected[0]).norm().item<double>(), 1e-12 * expected[0].norm().item<double>());
    EXPECT_LE((second.grad() - expected[1]).norm().item<double>(), 1e-12 * expected[1].norm().item<double>());
  }
}

struct Outcome {
  double value;
  at::Tensor gradient;  // summed over ranks, flat
  at::Tensor running_mean;
  int64_t batches;
};

ModelSpec small_net() {
  ModelSpec spec;
  spec.convnet_widths = {4};
  spec.projector = {6, 5};
  spec.dtype = at::kDouble;
  return spec;
}

Outcome in_pieces(comm::Comm& comm, int64_t count, const at::Tensor& images_of_all) {
  const auto encoder = make_encoder(small_net(), comm);
  encoder->train();
  const loss::Batch batch = batch_of(comm);
  const at::Tensor images = own(images_of_all, batch);
  const auto encode = [&](const at::Tensor& x) { return encoder->forward(x); };
  const MicroBatches pieces(batch.begin, batch.end, kViews, count);
  const at::Tensor z = pieces.forward(encode, images);
  discard_batch_norm(*encoder);
  const loss::LossResult result = loss()(z, batch, comm);
  pieces.backward(encode, images, result.dz, [] {});
  commit_batch_norm(*encoder);
  std::vector<at::Tensor> flat;
  for (const at::Tensor& p : encoder->parameters()) flat.push_back(p.grad().reshape(-1));
  Outcome outcome{result.value, at::cat(flat), {}, 0};
  comm.all_reduce(outcome.gradient);
  for (const auto& b : encoder->named_buffers()) {
    if (b.key() == "projector.1.running_mean") outcome.running_mean = b.value().clone();
    if (b.key() == "projector.1.num_batches_tracked") outcome.batches = b.value().item<int64_t>();
  }
  return outcome;
}

TEST(MicroBatches, AreThoseOfTheGlobalBatchForAnyNumberOfRanks) {
  SCOPED_TRACE("seed 3");
  const auto alone = comm::make_local_comm();
  const at::Tensor images = all_images({3, 5, 5});
  for (const int64_t count : {1, 3}) {
    const Outcome one = in_pieces(*alone, count, images);
    EXPECT_EQ(one.batches, count);
    for (const int ranks : {2, 3}) {
      comm::run_ranks(ranks, [&](comm::Comm& comm) {
        const Outcome many = in_pieces(comm, count, images);
        EXPECT_NEAR(many.value, one.value, 1e-10 * std::abs(one.value));
        EXPECT_LE((many.gradient - one.gradient).norm().item<double>(), 1e-9 * one.gradient.norm().item<double>());
        EXPECT_LE((many.running_mean - one.running_mean).abs().max().item<double>(), 1e-12);
        EXPECT_EQ(many.batches, count);
      });
    }
  }
}

// The function computed in pieces, with autograd through all of them.
TEST(MicroBatches, WithBatchNormGiveTheGradientOfTheFunctionInPieces) {
  SCOPED_TRACE("seed 3");
  const auto comm = comm::make_local_comm();
  const at::Tensor images = all_images({3, 5, 5});
  const Outcome ours = in_pieces(*comm, 3, images);
  const auto encoder = make_encoder(small_net(), *comm);
  encoder->train();
  const loss::Batch batch = batch_of(*comm);
  std::vector<at::Tensor> pieces;
  std::vector<int64_t> order(kViews * kPositions);  // row → index among the rows of the pieces
  int64_t at = 0;
  for (int64_t piece = 0; piece < 3; ++piece) {
    std::vector<at::Tensor> rows;
    for (int64_t r = 0; r < kViews * kPositions; ++r) {
      if (r % kPositions % 3 != piece) continue;
      rows.push_back(images.narrow(0, r, 1));
      order[r] = at++;
    }
    pieces.push_back(encoder->forward(at::cat(rows)));
  }
  const at::Tensor z = at::cat(pieces).index_select(0, at::tensor(order));
  const loss::LossResult result = loss()(z.detach().contiguous(), batch, *comm);
  EXPECT_NEAR(result.value, ours.value, 1e-12 * std::abs(ours.value));
  z.backward(result.dz);
  std::vector<at::Tensor> flat;
  for (const at::Tensor& p : encoder->parameters()) flat.push_back(p.grad().reshape(-1));
  EXPECT_LE((at::cat(flat) - ours.gradient).norm().item<double>(), 1e-11 * ours.gradient.norm().item<double>());
}

TEST(MicroBatches, MoreThanARanksShareIsRefused) { EXPECT_THROW(MicroBatches(0, 3, 2, 4), Error); }

}  // namespace
}  // namespace pal::model
