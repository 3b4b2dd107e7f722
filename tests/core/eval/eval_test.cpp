// eval: the probe against the closed form and known cases; kNN against a plain loop; embedding independent of W and
// batch.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/data/loader/augment_spec.h"
#include "core/eval/embed.h"
#include "core/eval/knn.h"
#include "core/eval/linear_probe.h"
#include "core/model/encoder.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "tests/core/comm/thread_comm.h"
#include "tests/core/data/jpeg_dataset.h"
#include "tests/support.h"

namespace pal::eval {
namespace {

struct Blobs {
  at::Tensor x;
  std::vector<int64_t> y;
};

// Classes at the corners of a simplex with noise `spread`; coordinates have very different scales and offsets.
Blobs blobs(int64_t n, int64_t classes, double spread, uint64_t seed) {
  Blobs b{at::empty({n, classes + 2}, at::kDouble), {}};
  for (int64_t i = 0; i < n; ++i) {
    Random random(seed, Purpose::noise, 0, static_cast<uint64_t>(i));
    b.y.push_back(i % classes);
    for (int64_t k = 0; k < classes; ++k) {
      const double v = (k == i % classes) + spread * random.normal();
      b.x[i][k] = v * std::pow(10.0, k - 2) + 50.0 * k;
    }
    b.x[i][classes] = random.normal();
    b.x[i][classes + 1] = 3.0;  // constant: must not become NaN
  }
  return b;
}

TEST(LinearProbe, SeparableClassesAtAnyScale) {
  const Blobs train = blobs(300, 4, 0.05, 1), test = blobs(100, 4, 0.05, 2);
  const Accuracy a = linear_probe(train.x, train.y, test.x, test.y, 4, {});
  EXPECT_EQ(a.top1, 1.0);
  EXPECT_EQ(a.train, 300);
  EXPECT_EQ(a.test, 100);
}

// Few rows with many columns, each weakly related to the class: with a weak penalty the probe fits the noise.
TEST(LinearProbe, TheRidgeIsChosenByRowsThatAreLeftOut) {
  const auto noisy = [](int64_t n, uint64_t seed) {
    constexpr int64_t kColumns = 200;
    Blobs b{at::empty({n, kColumns}, at::kDouble), {}};
    auto x = b.x.accessor<double, 2>();
    for (int64_t i = 0; i < n; ++i) {
      Random random(seed, Purpose::noise, 0, static_cast<uint64_t>(i));
      b.y.push_back(i % 3);
      for (int64_t k = 0; k < kColumns; ++k) x[i][k] = random.normal() + (k % 3 == i % 3 ? 0.25 : 0);
    }
    return b;
  };
  const Blobs train = noisy(250, 1), test = noisy(1500, 2);
  for (const ProbeMethod method : {ProbeMethod::lbfgs, ProbeMethod::ridge}) {
    ProbeOptions options;
    options.method = method;
    const double weak = linear_probe(train.x, train.y, test.x, test.y, 3, options).top1;
    options.ridge = choose_ridge(train.x, train.y, 3, options);
    EXPECT_GE(options.ridge, 0.1);
    EXPECT_GT(linear_probe(train.x, train.y, test.x, test.y, 3, options).top1, weak + 0.02);
  }
  const Blobs easy = blobs(300, 4, 0.05, 1);
  EXPECT_DOUBLE_EQ(choose_ridge(easy.x, easy.y, 4, {}), 1e-4) << "no other penalty is better than the default";
  EXPECT_EQ(choose_ridge(easy.x.narrow(0, 0, 8), {0, 1, 2, 3, 0, 1, 2, 3}, 4, {}), 1e-4) << "no row can be left out";
}

TEST(LinearProbe, NoiseGivesChance) {
  Blobs train = blobs(3000, 4, 0.05, 3), test = blobs(3000, 4, 0.05, 4);
  std::rotate(train.y.begin(), train.y.begin() + 1, train.y.end());
  Random random(9, Purpose::noise);
  for (auto& y : train.y) y = static_cast<int64_t>(random.below(4));
  const Accuracy a = linear_probe(train.x, train.y, test.x, test.y, 4, {});
  EXPECT_NEAR(a.top1, 0.25, 0.12);
}

TEST(LinearProbe, IgnoresUnknownLabelsAndReportsBadOnes) {
  Blobs train = blobs(60, 3, 0.05, 5);
  const Blobs test = blobs(30, 3, 0.05, 6);
  for (size_t i = 0; i < train.y.size(); i += 2) train.y[i] = -1;
  EXPECT_EQ(linear_probe(train.x, train.y, test.x, test.y, 3, {}).train, 30);
  train.y[7] = 3;
  const std::string error = error_of(Exit::data, [&] { linear_probe(train.x, train.y, test.x, test.y, 3, {}); });
  EXPECT_TRUE(contains(error, "sample 7: 3")) << error;
  EXPECT_THROW(linear_probe(train.x, std::vector<int64_t>(60, -1), test.x, test.y, 3, {}), Error);
  EXPECT_THROW(linear_probe(train.x, {}, test.x, test.y, 3, {}), Error);
}

TEST(LinearProbe, FindsTheMinimumOfTheRidgeProblem) {
  // At the minimum the gradient Xᵀ(P − Y)/n + λW is zero; so predictions do not change with more iterations.
  const Blobs train = blobs(200, 3, 0.9, 7), test = blobs(500, 3, 0.9, 8);
  const double few = linear_probe(train.x, train.y, test.x, test.y, 3, {1e-2, 60}).top1;
  const double many = linear_probe(train.x, train.y, test.x, test.y, 3, {1e-2, 1000}).top1;
  EXPECT_EQ(few, many);
}

TEST(Knn, EqualsAPlainLoop) {
  const uint64_t seed = 12;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Blobs train = blobs(150, 3, 0.8, seed), test = blobs(70, 3, 0.8, seed + 1);
  const KnnOptions options{7, 0.2};
  int64_t right = 0;
  for (int64_t q = 0; q < 70; ++q) {
    std::vector<std::pair<double, int64_t>> near;
    for (int64_t s = 0; s < 150; ++s) {
      const double cosine = (test.x[q].dot(train.x[s]) / (test.x[q].norm() * train.x[s].norm())).item<double>();
      near.emplace_back(-cosine, s);
    }
    std::sort(near.begin(), near.end());
    std::map<int64_t, double> votes;
    for (int64_t k = 0; k < options.k; ++k)
      votes[train.y[near[k].second]] += std::exp(-near[k].first / options.temperature);
    int64_t best = votes.begin()->first;
    for (const auto& [c, v] : votes) {
      if (v > votes[best]) best = c;
    }
    right += best == test.y[q];
  }
  EXPECT_DOUBLE_EQ(knn(train.x, train.y, test.x, test.y, 3, options).top1, static_cast<double>(right) / 70);
  EXPECT_NO_THROW(knn(train.x, train.y, test.x, test.y, 3, {1000, 0.07}));  // more neighbors than samples
}

// 64 neighbors use the kernel without a matrix, 65 the matrix: the first 64 agree, ties by the lower row.
TEST(Knn, BothWaysFindTheSameNeighbors) {
  const Blobs train = blobs(150, 3, 0.8, 31), test = blobs(40, 3, 0.8, 32);
  train.x[90].copy_(train.x[20]);  // equal rows
  train.x[7].copy_(train.x[20]);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const at::Tensor queries = at::cat({test.x, train.x.narrow(0, 20, 1)}).to(type), support = train.x.to(type);
    const Neighbors op = neighbors(queries, support, 64), matrix = neighbors(queries, support, 65);
    EXPECT_LT((op.similarity - matrix.similarity.narrow(1, 0, 64)).abs().max().item<double>(),
              type == at::kDouble ? 1e-12 : 1e-5);
    if (type == at::kDouble) {
      EXPECT_TRUE(op.index.equal(matrix.index.narrow(1, 0, 64)));
    }
    EXPECT_EQ(op.index[40][0].item<int64_t>(), 7);
    EXPECT_EQ(op.index[40][1].item<int64_t>(), 20);
    EXPECT_EQ(op.index[40][2].item<int64_t>(), 90);
  }
}

TEST(Knn, ARowThatIsNotFiniteIsNeverANeighbor) {
  const at::Tensor train = at::eye(3, at::kDouble).repeat({20, 1}), test = at::eye(3, at::kDouble).repeat({10, 1});
  std::vector<int64_t> train_labels(60), test_labels(30);
  for (int64_t i = 0; i < 60; ++i) train_labels[i] = i % 3;
  for (int64_t i = 0; i < 30; ++i) test_labels[i] = i % 3;
  EXPECT_EQ(knn(train, train_labels, test, test_labels, 3, {5, 0.1}).top1, 1.0);
  train[0][0] = std::nan("");
  test[0][0] = std::nan("");  // of class 0, which an argmax without votes would also give
  EXPECT_DOUBLE_EQ(knn(train, train_labels, test, test_labels, 3, {5, 0.1}).top1, 29.0 / 30);
}

// Eleven images of 6×6, image k filled with k.
class Flat final : public data::Dataset {
 public:
  int64_t size() const override { return 11; }
  data::Encoding encoding() const override { return data::Encoding::raw; }
  std::vector<int32_t> shape() const override { return {6, 6, 1}; }
  const std::vector<int64_t>& labels() const override { return labels_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t fingerprint() const override { return 1; }
  void read(int64_t sample, std::vector<uint8_t>& bytes) const override {
    bytes.assign(36, static_cast<uint8_t>(20 * sample));
  }
  kernels::ImageView image(int64_t, const std::vector<uint8_t>& bytes) const override {
    return {bytes.data(), 6, 6, 1};
  }

 private:
  std::vector<int64_t> labels_;
  std::vector<std::string> classes_;
};

TEST(Embed, IndependentOfRanksAndBatch) {
  const Flat data;
  std::vector<int64_t> samples(data.size());
  std::iota(samples.rbegin(), samples.rend(), int64_t{0});
  const auto features = [&](comm::Comm& comm, int64_t batch) {
    model::ModelSpec spec;
    spec.backbone = model::BackboneKind::convnet;
    spec.convnet_widths = {4, 5};
    spec.projector = {6, 3};
    spec.channels = 1;
    spec.dtype = at::kDouble;
    auto encoder = model::make_encoder(spec, comm);
    encoder->train();
    EmbedOptions options;
    options.augment.size = 6;
    options.augment.channels = 1;
    options.dtype = at::kDouble;
    options.batch = batch;
    const at::Tensor f = embed(*encoder, data, samples, options, comm);
    EXPECT_TRUE(encoder->is_training());
    options.what = EmbedWhat::embedding;
    EXPECT_EQ(embed(*encoder, data, samples, options, comm).size(1), 3);
    return f;
  };
  auto alone = comm::make_local_comm();
  const at::Tensor one = features(*alone, 256);
  EXPECT_EQ(one.size(0), 11);
  EXPECT_GT((one[0] - one[10]).abs().max().item<double>(), 0.0);
  EXPECT_TRUE(at::allclose(features(*alone, 4), one, 0, 1e-12));
  comm::run_ranks(3, [&](comm::Comm& comm) { EXPECT_TRUE(at::allclose(features(comm, 2), one, 0, 1e-12)); });
  const at::Tensor raw = inputs(data, samples, {}, 1);
  EXPECT_EQ(raw.sizes(), (std::vector<int64_t>{11, 36}));
  EXPECT_FLOAT_EQ(raw[0][5].item<float>(), 200.0f / 255.0f);
}

TEST(Embed, InputsOfJpegFilesAreTheirCenterViews) {
  const data::JpegDataset data(5, 30, 50, 3);
  data::AugmentSpec spec;
  EXPECT_THROW(inputs(data, {0, 1}, spec, 1), Error);  // of several sizes, and data.size is 0
  spec.size = 8;
  spec.mean = {0.5, 0.4, 0.3};  // of the encoder's views, not of these
  spec.std = {0.2, 0.2, 0.2};
  const at::Tensor pixels = inputs(data, {4, 0, 2}, spec, 2);
  EXPECT_EQ(pixels.sizes(), (std::vector<int64_t>{3, 3 * 8 * 8}));
  EXPECT_GE(pixels.min().item<float>(), 0.0f);
  EXPECT_LE(pixels.max().item<float>(), 1.0f);
  EXPECT_TRUE(at::equal(inputs(data, {0}, spec, 1)[0], pixels[1]));
  EXPECT_FALSE(at::equal(pixels[0], pixels[1]));
}

TEST(Embed, InputsOfManySamplesTellHowManyAreRead) {
  const data::JpegDataset data(3, 30, 50, 3);
  data::AugmentSpec spec;
  spec.size = 4;
  spec.mean = {0.5, 0.5, 0.5};
  spec.std = {0.2, 0.2, 0.2};
  std::vector<int64_t> samples, seen;
  for (int64_t i = 0; i < 2100; ++i) samples.push_back(i % 3);
  const at::Tensor pixels = inputs(data, samples, spec, 2, [&](int64_t done) { seen.push_back(done); });
  EXPECT_EQ(seen, (std::vector<int64_t>{700, 1400, 2100}));
  const at::Tensor three = inputs(data, {0, 1, 2}, spec, 1);
  for (int64_t i = 0; i < 2100; ++i) ASSERT_TRUE(at::equal(pixels[i], three[i % 3])) << i;
  samples.assign(int64_t{1} << 18, 0);
  spec.size = 1 << 14;  // 844 TB
  EXPECT_THROW(inputs(data, samples, spec, 1), Error);
}

}  // namespace
}  // namespace pal::eval
