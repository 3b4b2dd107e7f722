// ops: ops on CPU tensors run the kernels. On the meta device every tensor of a criterion is on meta; an error names a
// tensor on another device.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/loss/vic2.h"
#include "core/loss/vicreg.h"
#include "core/ops/graph.h"
#include "core/ops/moments.h"
#include "core/ops/similarity.h"
#include "core/ops/tensors.h"
#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"
#include "tests/support.h"

namespace pal::ops {
namespace {

using kernels::Into;

struct Arguments {
  at::Tensor z, out, doubles, square, sums, table, row_block, offsets, columns, weights, packed, terms, ids, scores,
      self;

  explicit Arguments(const at::Device& device) {
    const auto made = [&](at::IntArrayRef shape, at::ScalarType type) {
      return at::zeros(shape, at::TensorOptions(device).dtype(type));
    };
    z = made({4, 3}, at::kFloat);
    out = made({4, 3}, at::kFloat);
    doubles = made({3}, at::kDouble);
    square = made({3, 3}, at::kFloat);
    sums = made({2, 3}, at::kDouble);
    table = made({2, 2}, at::kDouble);
    row_block = made({4}, at::kInt);
    offsets = made({5}, at::kLong);
    columns = made({0}, at::kInt);
    weights = made({0}, at::kDouble);
    packed = made({6}, at::kDouble);
    terms = made({2}, at::kDouble);
    ids = made({4, 2}, at::kLong);
    scores = made({4, 2}, at::kDouble);
    self = made({4}, at::kLong);
  }

  // Every op; x replaces one of its tensors other than z.
  std::vector<std::function<void(const at::Tensor& x)>> calls() const {
    const at::Tensor lse = terms.device().is_meta() ? at::empty({4}, terms.options()) : at::zeros({4}, terms.options());
    const kernels::RowLogSumExpOptions softmax;
    return {
        [=, this](const at::Tensor& x) { ops::column_sums(x.defined() ? x : doubles, z, 1); },
        [=, this](const at::Tensor& x) { ops::centered_second_moment(packed, z, x.defined() ? x : doubles, {}, 1); },
        [=, this](const at::Tensor& x) { ops::covariance_terms(terms, z, x.defined() ? x : packed, 4, {}, 1); },
        [=, this](const at::Tensor& x) {
          ops::centered_product(out, z, doubles, x.defined() ? x : square, Into::add, 1);
        },
        [=, this](const at::Tensor& x) {
          ops::gram_terms(out, x.defined() ? x : terms, z, doubles, 0, {}, Into::add, 1);
        },
        [=, this](const at::Tensor& x) {
          ops::graph_rows(out, {}, z, z, {offsets, columns, x.defined() ? x : weights}, {}, 1);
        },
        [=, this](const at::Tensor& x) { ops::block_sums(sums, z, x.defined() ? x : row_block, 1); },
        [=, this](const at::Tensor& x) { ops::block_table(at::zeros_like(sums), x.defined() ? x : table, sums, 1); },
        [=, this](const at::Tensor& x) {
          ops::block_between(at::zeros_like(sums), at::zeros_like(terms), {}, x.defined() ? x : table, sums, terms, 1);
        },
        [=, this](const at::Tensor& x) { ops::block_rows(out, x.defined() ? x : sums, row_block, 1.0, Into::add, 1); },
        [=, this](const at::Tensor& x) {
          ops::block_differences(out, {}, z, sums, x.defined() ? x : terms, row_block, 1.0, Into::add, 1);
        },
        [=, this](const at::Tensor& x) { ops::row_logsumexp(x.defined() ? x : lse, z, z, {}, softmax, 1); },
        [=, this](const at::Tensor& x) {
          ops::row_logsumexp_gradient(out, z, z, self, {lse, x.defined() ? x : lse}, {}, softmax, 1);
        },
        [=, this](const at::Tensor& x) {
          ops::nearest(x.defined() ? x : ids, scores, z, {z, {}, {}}, {}, kernels::Metric::cosine, 1);
        },
    };
  }
};

TEST(Ops, RunOnTheCpuAndOnMeta) {
  for (const at::DeviceType device : {at::kCPU, at::kMeta}) {
    const Arguments arguments(device);
    for (const auto& call : arguments.calls()) EXPECT_NO_THROW(call({}));
  }
}

TEST(Ops, NameATensorOnAnotherDevice) {
  const at::Tensor elsewhere = at::empty({2, 2}, at::TensorOptions(at::kMeta).dtype(at::kDouble));
  const Arguments arguments(at::kCPU);
  int n = 0;
  for (const auto& call : arguments.calls()) {
    SCOPED_TRACE(n++);
    const std::string error = error_of(Exit::bug, [&] { call(elsewhere); });
    EXPECT_TRUE(contains(error, "meta, another on cpu")) << error;
  }
}

// One of several ranks on meta: returns the shapes of the collectives, and reports tensors on another device.
class MetaComm final : public comm::Comm {
 public:
  MetaComm(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override {}
  void all_reduce(at::Tensor t, comm::ReduceOp) override { rows_like(t, {}); }
  at::Tensor all_gather(const at::Tensor& t) override { return rows_like(t, {t.size(0) * size_}); }
  at::Tensor all_gather_v(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    return rows_like(t, counts);
  }
  at::Tensor gather_v(const at::Tensor& t, const std::vector<int64_t>& counts, int) override {
    return rows_like(t, counts);
  }
  at::Tensor reduce_scatter(const at::Tensor& t, const std::vector<int64_t>& counts) override {
    return rows_like(t, {counts[rank_]});
  }
  at::Tensor all_to_all_v(const at::Tensor& t, const std::vector<int64_t>&,
                          const std::vector<int64_t>& counts) override {
    return rows_like(t, counts);
  }
  void broadcast(at::Tensor t, int) override { rows_like(t, {}); }

 private:
  static at::Tensor rows_like(const at::Tensor& t, const std::vector<int64_t>& counts) {
    EXPECT_TRUE(t.is_meta()) << "a tensor on " << t.device() << " is sent";
    std::vector<int64_t> shape = t.sizes().vec();
    shape[0] = 0;
    for (const int64_t n : counts) shape[0] += n;
    return at::empty(shape, t.options());
  }
  int rank_, size_;
};

// Every tensor of a criterion is on z's device: on meta, a CPU tensor would be reported.
TEST(Ops, CriteriaStayOnTheDeviceOfZ) {
  loss::VicregOptions per_view, pooled;
  pooled.moments = loss::Moments::pooled;
  std::vector<loss::Criterion> criteria = {loss::make_vicreg(per_view), loss::make_vicreg(pooled),
                                           loss::make_vic2({graph::SelfLoops::on}),
                                           loss::make_vic2({graph::SelfLoops::off})};
  for (const char* kind : {"scl", "sampled_vic2", "simclr", "barlow", "nnclr", "mse", "cross_entropy"}) {
    criteria.push_back(loss::make_criterion(spec_of({std::string("loss.kind=") + kind, "graph.kind=mixed"}).loss));
  }
  criteria.push_back(loss::make_criterion(spec_of({"loss.kind=barlow", "loss.barlow=graph"}).loss));
  criteria.push_back(loss::make_criterion(spec_of({"loss.kind=sampled_vic2", "loss.form=printed"}).loss));
  for (const auto& [name, graph] : loss::test_graphs(10, 2, graph::Signs::any)) {
    for (const std::vector<int64_t>& rank_begin : {std::vector<int64_t>{0, 10}, {0, 4, 10}, {0, 0, 7, 10}}) {
      for (int rank = 0; rank + 1 < static_cast<int>(rank_begin.size()); ++rank) {
        SCOPED_TRACE(name + ", rank " + std::to_string(rank) + " of " + std::to_string(rank_begin.size() - 1));
        loss::Batch batch = loss::slice_of(graph, rank_begin, rank);
        MetaComm comm(rank, static_cast<int>(rank_begin.size()) - 1);
        for (const int64_t dims : {3, 40}) {  // covariance form, Gram form
          const at::Tensor z = at::empty({batch.local_rows(), dims}, at::TensorOptions(at::kMeta).dtype(at::kFloat));
          batch.labels.assign(10, 1);
          batch.anchors = z;
          batch.support = at::empty({5, dims}, z.options());
          if (dims == 40) batch.related = batch.repelled = loss::PairSample{{0, 3, 19}, {7, 3, 2}, {1, 1, 0.5}};
          for (const loss::Criterion& criterion : criteria) {
            loss::LossResult result;
            ASSERT_NO_THROW(result = criterion(z, batch, comm));
            EXPECT_TRUE(result.dz.is_meta());
            EXPECT_EQ(result.dz.sizes(), z.sizes());
          }
        }
      }
    }
  }
}

TEST(Ops, IndexListsAreOnTheDeviceOfZ) {
  const std::vector<int32_t> list = {3, -1, 2};
  const at::Tensor here = ops::to_device_of(at::zeros({1}), list);
  EXPECT_EQ(here.const_data_ptr<int32_t>(), list.data());
  const at::Tensor there = ops::to_device_of(at::empty({1}, at::TensorOptions(at::kMeta)), list);
  EXPECT_TRUE(there.is_meta());
  EXPECT_EQ(there.scalar_type(), at::kInt);
  EXPECT_EQ(ops::to_host(at::ones({2}, at::kDouble)), (std::vector<double>{1, 1}));
  EXPECT_EQ(ops::to_host(at::empty({2}, at::TensorOptions(at::kMeta))), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace pal::ops
