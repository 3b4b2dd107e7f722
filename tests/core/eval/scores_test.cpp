// scores: top-1, top-5, confusion and ties against a plain loop; coverage of bootstrap intervals; the ridge probe
// against its normal equations; kNN sweeps and fine-tuning for any number of ranks; uniformity, alignment, principal
// plane.
#include "core/eval/scores.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/eval/finetune.h"
#include "core/eval/knn.h"
#include "core/eval/representation.h"
#include "core/model/encoder.h"
#include "kernels/base/philox.h"
#include "tests/core/comm/thread_comm.h"

namespace pal::eval {
namespace {

at::Tensor noise_rows(int64_t n, int64_t dims, uint64_t seed) {
  at::Tensor x = at::empty({n, dims}, at::kDouble);
  Random random(seed, Purpose::noise);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = random.normal();
  return x;
}

std::vector<int64_t> cyclic(int64_t n, int64_t classes) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(i % classes);
  return labels;
}

TEST(Scores, EqualAPlainLoopWithTiesAndMissingPredictions) {
  const int64_t n = 200, classes = 7;
  const at::Tensor scores = (noise_rows(n, classes, 3) * 2).round();  // many ties
  const at::Tensor labels = at::tensor(cyclic(n, classes));
  scores[5].fill_(std::nan(""));
  scores[6][3] = INFINITY;
  const Accuracy a = tally(predictions_of(scores, labels), labels, classes, 11);
  int64_t top1 = 0, top5 = 0;
  std::vector<int64_t> confusion(classes * classes), found(classes), of(classes);
  for (int64_t i = 0; i < n; ++i) {
    ++of[i % classes];
    if (i == 5 || i == 6) continue;  // no prediction
    std::vector<std::pair<double, int64_t>> order;
    for (int64_t c = 0; c < classes; ++c) order.emplace_back(-scores[i][c].item<double>(), c);
    std::sort(order.begin(), order.end());
    const auto place =
        std::find_if(order.begin(), order.end(), [&](const auto& o) { return o.second == i % classes; }) -
        order.begin();
    top1 += place == 0;
    top5 += place < 5;
    found[i % classes] += place == 0;
    ++confusion[i % classes * classes + order[0].second];
  }
  EXPECT_DOUBLE_EQ(a.top1, top1 / 200.0);
  EXPECT_DOUBLE_EQ(a.top5, top5 / 200.0);
  EXPECT_EQ(a.confusion, confusion);
  EXPECT_EQ(a.train, 11);
  for (int64_t c = 0; c < classes; ++c)
    EXPECT_DOUBLE_EQ(a.per_class[c], static_cast<double>(found[c]) / static_cast<double>(of[c]));
  EXPECT_LT(a.low, a.top1);
  EXPECT_GT(a.high, a.top1);
}

// For 200 samples with a success rate of 0.7 the interval must contain 0.7 in about 95 of 100 trials.
TEST(Scores, BootstrapIntervalsCover) {
  int covered = 0;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    Random random(trial, Purpose::noise);
    int64_t hits = 0;
    for (int i = 0; i < 300; ++i) hits += random.next_double() < 0.7;
    const Interval interval = bootstrap(hits, 300);
    covered += interval.low <= 0.7 && 0.7 <= interval.high;
  }
  EXPECT_GE(covered, 180);
  EXPECT_LE(covered, 199);
  EXPECT_EQ(bootstrap(0, 0).high, 0);
  EXPECT_EQ(bootstrap(50, 50).low, 1);
  EXPECT_EQ(bootstrap(0, 50).high, 0);
  // Against explicit resampling.
  for (const int64_t hits : {3, 140, 199}) {
    std::vector<double> shares;
    for (uint64_t draw = 0; draw < 4000; ++draw) {
      Random random(7, Purpose::noise, draw, static_cast<uint64_t>(hits));
      int64_t sum = 0;
      for (int i = 0; i < 200; ++i) sum += random.below(200) < static_cast<uint64_t>(hits);
      shares.push_back(static_cast<double>(sum) / 200);
    }
    std::sort(shares.begin(), shares.end());
    EXPECT_NEAR(bootstrap(hits, 200).low, shares[100], 0.0101) << hits;
    EXPECT_NEAR(bootstrap(hits, 200).high, shares[3900], 0.0101) << hits;
  }
}

TEST(RidgeProbe, IsTheLeastSquaresSolution) {
  const int64_t n = 80, dims = 5, classes = 3;
  const at::Tensor x = noise_rows(n, dims, 5) * at::tensor({1.0, 100.0, 0.01, 3.0, 1.0}) + 7;
  const std::vector<int64_t> y = cyclic(n, classes);
  const at::Tensor z = (x - x.mean(0)) / x.std(0, false);
  at::Tensor target = at::full({n, classes}, -1.0, at::kDouble).scatter_(1, at::tensor(y).unsqueeze(1), 1.0);
  const at::Tensor w =
      at::linalg_solve(z.t().mm(z) / n + 0.1 * at::eye(dims, at::kDouble), z.t().mm(target - target.mean(0)) / n);
  const at::Tensor predicted = (z.mm(w) + target.mean(0)).argmax(1);
  ProbeOptions options;
  options.method = ProbeMethod::ridge;
  options.ridge = 0.1;
  EXPECT_DOUBLE_EQ(linear_probe(x, y, x, y, classes, options).top1,
                   predicted.eq(at::tensor(y)).to(at::kDouble).mean().item<double>());
}

TEST(Knn, ASweepEqualsItsPartsForAnyNumberOfRanks) {
  const at::Tensor train = noise_rows(90, 4, 1), test = noise_rows(23, 4, 2);
  const std::vector<int64_t> a = cyclic(90, 3), b = cyclic(23, 3);
  const std::vector<KnnOptions> sweep = {{1, 0.07}, {5, 0.5}, {5, 0.01}, {80, 0.2}};
  comm::run_ranks(3, [&](comm::Comm& comm) {
    const std::vector<Accuracy> found = knn_sweep(train, a, test, b, 3, sweep, comm);
    for (size_t o = 0; o < sweep.size(); ++o) {
      const Accuracy one = knn(train, a, test, b, 3, sweep[o]);
      EXPECT_EQ(found[o].top1, one.top1);
      EXPECT_EQ(found[o].confusion, one.confusion);
      EXPECT_EQ(found[o].test, 23);  // none twice
    }
  });
  comm::run_ranks(4, [&](comm::Comm& comm) {
    EXPECT_EQ(knn_sweep(train, a, test.narrow(0, 0, 2), {0, 1}, 3, {{5, 0.1}}, comm)[0].test, 2);
  });  // ranks without a sample
}

// Images of one color per class, with noise.
class Colors final : public data::Dataset {
 public:
  Colors(int64_t size, uint64_t seed) : size_(size), seed_(seed), labels_(cyclic(size, 3)) {}
  int64_t size() const override { return size_; }
  data::Encoding encoding() const override { return data::Encoding::raw; }
  std::vector<int32_t> shape() const override { return {8, 8, 1}; }
  const std::vector<int64_t>& labels() const override { return labels_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t fingerprint() const override { return 1; }
  void read(int64_t sample, std::vector<uint8_t>& bytes) const override {
    Random random(seed_, Purpose::noise, 0, static_cast<uint64_t>(sample));
    bytes.resize(64);
    for (auto& b : bytes) b = static_cast<uint8_t>(40 + 70 * (sample % 3) + static_cast<int64_t>(random.below(30)));
  }
  kernels::ImageView image(int64_t, const std::vector<uint8_t>& bytes) const override {
    return {bytes.data(), 8, 8, 1};
  }

 private:
  int64_t size_;
  uint64_t seed_;
  std::vector<int64_t> labels_;
  std::vector<std::string> classes_ = {"a", "b", "c"};
};

struct Tuned {
  Accuracy accuracy;
  at::Tensor weights;
};
Tuned tuned(comm::Comm& comm, TrainedPart part, double fraction) {
  model::ModelSpec spec;
  spec.backbone = model::BackboneKind::convnet;
  spec.convnet_widths = {4, 6};
  spec.projector = {};
  spec.channels = 1;
  spec.dtype = at::kDouble;
  const auto encoder = model::make_encoder(spec, comm);
  FinetuneOptions o;
  o.part = part;
  o.fraction = fraction;
  o.epochs = 12;
  o.global_batch = 10;
  o.lr = 60;
  o.encoder_lr = 2;
  o.augment.size = 8;
  o.augment.channels = 1;
  o.dtype = at::kDouble;
  const Colors train(46, 1), test(31, 2);
  Tuned result;
  result.accuracy = finetune(*encoder, std::make_shared<Colors>(train), test, o, comm);
  std::vector<at::Tensor> flat;
  for (const auto& p : encoder->parameters()) flat.push_back(p.detach().reshape({-1}));
  result.weights = at::cat(flat);
  return result;
}

TEST(Finetune, IsTheSameForAnyNumberOfRanksAndBothParts) {
  for (const TrainedPart part : {TrainedPart::head, TrainedPart::all}) {
    auto alone = comm::make_local_comm();
    const Tuned one = tuned(*alone, part, 1);
    EXPECT_GT(one.accuracy.top1, 0.9);
    EXPECT_EQ(one.accuracy.train, 46);
    EXPECT_EQ(one.accuracy.test, 31);
    for (const int ranks : {2, 3}) {
      comm::run_ranks(ranks, [&](comm::Comm& comm) {
        const Tuned many = tuned(comm, part, 1);
        EXPECT_EQ(many.accuracy.confusion, one.accuracy.confusion);
        EXPECT_LT((many.weights - one.weights).abs().max().item<double>(), 1e-9);
      });
    }
  }
}

TEST(Finetune, AShareOfTheLabelsIsAShareOfEachClass) {
  const std::vector<int64_t> labels = cyclic(300, 3);
  const auto few = labeled_share(labels, 3, 0.1, 4), other = labeled_share(labels, 3, 0.1, 5);
  std::vector<int64_t> count(3);
  for (const int64_t s : few) ++count[labels[s]];
  EXPECT_EQ(count, (std::vector<int64_t>{10, 10, 10}));
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end()));
  EXPECT_NE(few, other);
  EXPECT_EQ(labeled_share(labels, 3, 0.001, 4).size(), 3u);  // at least one of each
  EXPECT_THROW(labeled_share(std::vector<int64_t>(9, -1), 3, 1, 0), std::exception);
}

TEST(Representation, KnownFigures) {
  EXPECT_NEAR(uniformity(at::ones({50, 3}, at::kDouble)), 0, 1e-12);  // collapse
  const at::Tensor axes = at::cat({at::eye(6, at::kDouble), -at::eye(6, at::kDouble)});
  EXPECT_NEAR(feature_rank(axes + 1e4), 6, 1e-6);            // equal spread in all directions, for any mean
  EXPECT_NEAR(feature_rank(axes.narrow(0, 0, 2)), 1, 1e-9);  // two points form a line; the Gram form
  EXPECT_EQ(feature_rank(at::ones({4, 3})), 0);
  const at::Tensor pair = at::tensor({1.0, 0.0, -2.0, 0.0}).reshape({2, 2});
  EXPECT_NEAR(uniformity(pair), -8, 1e-9);  // two opposite points: distance 2
  EXPECT_NEAR(alignment(pair, pair), 0, 1e-12);
  EXPECT_NEAR(alignment(pair, -pair), 4, 1e-12);
  EXPECT_LT(uniformity(noise_rows(500, 64, 9)), -3.5);
}

TEST(Representation, ThePlaneHoldsTheVariance) {
  const at::Tensor wide = noise_rows(400, 6, 3) * at::tensor({0.1, 9.0, 0.2, 0.1, 4.0, 0.1}) + 100;
  const PlaneMap map = principal_plane(wide);
  EXPECT_NEAR(map.share[0] + map.share[1], 1, 0.01);
  EXPECT_GT(map.share[0], 0.75);
  const auto correlation = [](const at::Tensor& a, const at::Tensor& b) {
    return (((a - a.mean()) * (b - b.mean())).mean() / (a.std(false) * b.std(false))).item<double>();
  };
  EXPECT_GT(correlation(map.points.select(1, 0), wide.select(1, 1)), 0.99);
  EXPECT_GT(correlation(map.points.select(1, 1), wide.select(1, 4)), 0.99);
}

}  // namespace
}  // namespace pal::eval
