// scale_model_test: collectives against their closed forms, a step by hand, checkpoints, cluster files, known points.
#include "dist/scale/scale_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "dist/scale/cluster.h"
#include "dist/scale/collective_cost.h"
#include "kernels/base/error.h"
#include "tests/test_folder.h"

namespace pal::dist {
namespace {

Fabric fabric(int per_node) { return {per_node, {1e-6, 100e9}, {5e-6, 20e9}, 0}; }

TEST(CollectiveCost, ClosedFormsInOneNode) {
  const Fabric f = fabric(8);
  const double n = 64e6;
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, f, 8, n, Route::flat_ring), 14e-6 + 1.75 * n / 100e9, 1e-12);
  EXPECT_NEAR(collective_seconds(Collective::all_gather, f, 8, n, Route::flat_ring), 7e-6 + 0.875 * n / 100e9, 1e-12);
  EXPECT_NEAR(collective_seconds(Collective::broadcast, f, 8, n), 3e-6 + n / 100e9, 1e-12);
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, f, 8, 8), 6e-6 + 16 / 100e9,
              1e-12);  // a small one takes the tree
  for (const Collective c :
       {Collective::all_reduce, Collective::all_gather, Collective::broadcast, Collective::all_to_all}) {
    EXPECT_EQ(collective_seconds(c, f, 1, n), 0) << collective_name(c);
  }
}

TEST(CollectiveCost, NodesShareTheirCards) {
  const Fabric f = fabric(8);
  const double n = 1e9;
  // A ring in the node, then a ring between four nodes: the cards carry 2·3/4·n.
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, f, 32, n, Route::hierarchical),
              14e-6 + 1.75 * n / 100e9 + 6 * 5e-6 + 1.5 * n / 20e9, 1e-9);
  // The flat ring: 28 steps in nodes and 3 between them, twice, at the slower rate.
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, f, 32, n, Route::flat_ring),
              2 * (28 * 1e-6 + 3 * 5e-6) + 2 * 31.0 / 32 * n / 20e9, 1e-9);
  for (int ranks = 2; ranks <= 4096; ranks *= 2) {
    for (const double bytes : {8.0, 1e4, 1e6, 1e9}) {
      const double best = collective_seconds(Collective::all_reduce, f, ranks, bytes);
      EXPECT_LE(best, collective_seconds(Collective::all_reduce, f, ranks, bytes, Route::flat_ring));
      EXPECT_LE(best, collective_seconds(Collective::all_reduce, f, 2 * ranks, bytes) + 1e-12) << ranks << " " << bytes;
      EXPECT_LT(best, collective_seconds(Collective::all_reduce, f, ranks, 2 * bytes + 8));
    }
  }
}

TEST(CollectiveCost, LargerMessagesTakeTheirPiece) {
  Fabric f = fabric(8);
  f.node.larger = {{4096, 20e-6, 50e9}, {1e6, 30e-6, 10e9}};
  // A message of a ring is a rank's share.
  EXPECT_NEAR(collective_seconds(Collective::all_gather, f, 8, 8 * 4095, Route::flat_ring), 7e-6 + 7 * 4095 / 100e9,
              1e-15);
  EXPECT_NEAR(collective_seconds(Collective::all_gather, f, 8, 8 * 4096, Route::flat_ring), 140e-6 + 7 * 4096 / 50e9,
              1e-15);
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, f, 8, 64e6, Route::flat_ring), 420e-6 + 1.75 * 64e6 / 10e9,
              1e-12);
  EXPECT_NEAR(collective_seconds(Collective::broadcast, f, 8, 4096), 3 * 20e-6 + 4096 / 50e9,
              1e-12);  // by the tree: all of it
  // Collectives that do not sum may have another link in a node.
  f.gather = CommLink{2e-6, 10e9};
  EXPECT_NEAR(collective_seconds(Collective::all_gather, f, 8, 8 * 4096, Route::flat_ring), 14e-6 + 7 * 4096 / 10e9,
              1e-15);
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, f, 8, 64e6, Route::flat_ring), 420e-6 + 1.75 * 64e6 / 10e9,
              1e-12);
  f.gather.reset();
  // Between nodes the network's pieces count: of 32 ranks, 28 steps of a ring are in nodes.
  f.network.larger = {{1e6, 500e-6, 1e9}};
  EXPECT_NEAR(collective_seconds(Collective::all_gather, f, 32, 64e6, Route::flat_ring),
              28 * 30e-6 + 3 * 500e-6 + 31.0 / 32 * 64e6 / 1e9, 1e-9);
}

std::vector<CommSample> timed(const CommLink& link, const std::vector<Collective>& collectives, double noise,
                              unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
  std::vector<CommSample> samples;
  for (const Collective c : collectives) {
    for (double bytes = 64; bytes < 3e7; bytes *= 2) {
      samples.push_back({c, 4, bytes, 0});
      samples.back().seconds = factor(random) * ring_seconds(samples.back(), link);
    }
  }
  return samples;
}

TEST(LinkFit, TimesOnALineGetOnePiece) {
  int more = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<CommSample> samples =
        timed({3e-6, 4e9}, {Collective::all_reduce, Collective::all_gather}, 0.05, seed);
    const CommLink one = fit_link(samples, 1);
    EXPECT_NEAR(one.alpha, 3e-6, 0.15e-6) << "seed " << seed;
    EXPECT_NEAR(one.beta, 4e9, 0.2e9) << "seed " << seed;
    more += !fit_link(samples).larger.empty();
    EXPECT_THROW(fit_link({samples[0]}), Error);
  }
  EXPECT_LE(more, 4) << "noise rarely adds a piece";
}

TEST(LinkFit, LatencyAndBandwidthAreNotNegative) {
  for (const double power : {1.5, -0.2}) {  // a line through such times would begin below 0, or fall
    std::vector<CommSample> samples;
    for (double bytes = 64; bytes < 1e6; bytes *= 2)
      samples.push_back({Collective::all_gather, 2, bytes, 1e-9 * std::pow(bytes, power)});
    for (const size_t most : {1, 4}) {
      const CommLink link = fit_link(samples, most);
      for (const CommSample& s : samples) {
        const CommPiece piece = link.at(message_bytes(s));
        EXPECT_GE(piece.alpha, 0) << power;
        EXPECT_GT(piece.beta, 0) << power;
      }
    }
  }
}

TEST(LinkFit, FindsThePiecesBehindTheTimes) {
  const unsigned seed = 8;
  const CommLink made{1e-6, 3e9, {{4096, 6e-6, 9e9}, {1 << 21, 0, 2e9}}};
  for (const double noise : {0.0, 0.05}) {
    const std::vector<CommSample> samples =
        timed(made, {Collective::all_reduce, Collective::broadcast, Collective::all_to_all}, noise, seed);
    const CommLink link = fit_link(samples);
    ASSERT_EQ(link.larger.size(), 2u) << "seed " << seed;
    EXPECT_EQ(link.larger[0].from, 4096) << "seed " << seed;
    EXPECT_EQ(link.larger[1].from, 1 << 21) << "seed " << seed;
    EXPECT_NEAR(link.alpha, 1e-6, 1e-6 * (0.001 + 2 * noise)) << "seed " << seed;
    EXPECT_NEAR(link.larger[0].beta, 9e9, 9e9 * (0.001 + 3 * noise)) << "seed " << seed;
    EXPECT_NEAR(link.larger[1].beta, 2e9, 2e9 * (0.001 + 2 * noise)) << "seed " << seed;
    // Sizes that were not fitted, also right below a switch.
    for (const double bytes : {96.0, 4 * 4095.0, 4 * 4096.0, 100e3, 4.0 * (1 << 21) - 4, 20e6}) {
      const CommSample s{Collective::all_reduce, 4, bytes, 0};
      EXPECT_NEAR(ring_seconds(s, link) / ring_seconds(s, made), 1, 0.001 + 2 * noise) << bytes << ", seed " << seed;
    }
    for (const size_t most : {1, 2}) EXPECT_EQ(fit_link(samples, most).larger.size(), most - 1);
  }
}

ModelCost two_layers() {
  ModelCost m;
  m.layers = {{"a", 1000, 1e9, LayerCost::Kind::conv, 0},
              {"n", 20, 0, LayerCost::Kind::norm, 10},
              {"b", 4000, 2e9, LayerCost::Kind::matmul, 0}};
  m.activation_bytes = 1e6;
  m.embedding = 8;
  return m;
}

Cluster simple() {
  Cluster c = read_cluster("a100-8");
  c.full = {1e12, 0.5, 1};
  c.kernel_seconds = 0;
  c.fabric = {4, {1e-6, 1e9}, {10e-6, 1e9}, 0};
  c.memory_rate = 1e12;
  return c;
}

Workload work() {
  Workload w;
  w.samples = 32;
  w.loss = {LossForm::local, 1, 1, 8, 4, 8};
  return w;
}

TEST(ScaleModel, AStepByHand) {
  const StepCost s = predict_step(two_layers(), work(), simple(), 4);
  EXPECT_NEAR(s.compute, 3 * 8 * (1e9 / 0.5e12 + 2e9 / 1e12), 1e-9);
  // Batch norm: 21 and 20 doubles over a node of four: the tree, then the ring of 160 bytes is never shorter.
  EXPECT_NEAR(s.exposed_norm, 2 * 4e-6 + 2 * (168.0 + 160.0) / 1e9, 1e-12);
  // One bucket of 5,020 floats, sent when backward is over.
  EXPECT_NEAR(s.exposed_gradients, std::min(6e-6 + 1.5 * 20080 / 1e9, 4e-6 + 2 * 20080 / 1e9), 1e-12);
  EXPECT_NEAR(s.step, s.compute + s.exposed_norm + s.exposed_loss + s.exposed_gradients + s.optimizer, 1e-15);
  EXPECT_NEAR(s.samples_per_s, 32 / s.step, 1e-9);
  EXPECT_NEAR(s.memory.weights + s.memory.gradients + s.memory.optimizer, 3 * 4 * 5020, 1);
  EXPECT_NEAR(s.memory.activations, 8e6, 1);
  EXPECT_EQ(s.gradient_bytes, 4 * 5020);
  EXPECT_EQ(s.norm_bytes, 168 + 160);
  EXPECT_THROW(predict_step(two_layers(), work(), simple(), 33), Error);
}

TEST(ScaleModel, BucketsOverlapWithBackward) {
  ModelCost m = two_layers();
  Workload w = work();
  m.layers[2].parameters = 1000000;  // 4 MB, ready before the first layer's backward, which takes 32 ms
  w.bucket_bytes = 1 << 20;
  const StepCost s = predict_step(m, w, simple(), 4);
  EXPECT_GT(s.gradient_seconds, 6e-3);
  EXPECT_LT(s.exposed_gradients, 1e-4);
  Cluster slow = simple();
  slow.fabric.node.beta = 1e8;  // 60 ms: half of it cannot be hidden
  EXPECT_NEAR(predict_step(m, w, slow, 4).exposed_gradients, 60e-3 - 32e-3, 1e-3);
}

TEST(ScaleModel, FormsOfTheLoss) {
  LossShape shape{LossForm::covariance, 2, 2, 100, 4, 8};
  const auto bytes = [&](LossForm form, int64_t samples) {
    shape.form = form;
    double sum = 0;
    for (const Exchange& e : loss_exchanges(shape, samples)) sum += e.bytes;
    return sum;
  };
  EXPECT_EQ(bytes(LossForm::covariance, 512), 8 + 2 * 100 * 8 + 2 * 5050 * 8);
  EXPECT_EQ(bytes(LossForm::covariance, 4096), bytes(LossForm::covariance, 512));  // not of the batch
  EXPECT_EQ(bytes(LossForm::gram, 512), 8 + 2 * 100 * 8 + 1024 * 100 * 4);
  EXPECT_EQ(bytes(LossForm::official, 512), 2 * 1024 * 100 * 4);
  // The published form computes all rows on each GPU; ours only its own.
  Workload w = work();
  w.samples = 4096;
  w.loss = {LossForm::official, 2, 2, 8192, 4, 8};
  const StepCost official = predict_step(two_layers(), w, read_cluster("a100-8"), 512);
  w.loss.form = LossForm::covariance;
  const StepCost ours = predict_step(two_layers(), w, read_cluster("a100-8"), 512);
  EXPECT_NEAR(official.loss_compute / ours.loss_compute, 512 * 1.5, 1);
}

TEST(ScaleModel, LoaderIsALimit) {
  Cluster c = simple();
  const StepCost free = predict_step(two_layers(), work(), c, 8);
  c.loader_rate = free.loader_per_node / 2;
  const StepCost bound = predict_step(two_layers(), work(), c, 8);
  EXPECT_TRUE(bound.loader_bound);
  EXPECT_NEAR(bound.step, 2 * free.step, 1e-12);
}

TEST(ScaleModel, CheckpointIntervals) {
  EXPECT_NEAR(young_interval(10, 72000), 1200, 1e-9);
  EXPECT_EQ(daly_interval(10, 4), 4);
  // The share is largest at Daly's interval, whatever the failures; without any it is 1.
  for (const double mtbf : {1e3, 1e5, 1e7}) {
    const double best = daly_interval(5, mtbf);
    const double share = effective_share(best, 5, 60, mtbf);
    EXPECT_GT(share, effective_share(best * 1.5, 5, 60, mtbf));
    EXPECT_GT(share, effective_share(best / 1.5, 5, 60, mtbf));
    EXPECT_LT(share, 1);
  }
  EXPECT_NEAR(effective_share(100, 0, 0, 1e12), 1, 1e-6);
}

std::string cluster_complaint(const std::string& text) {
  const TestFolder folder;
  const std::string path = folder / "cluster.yaml";
  std::ofstream(path) << text;
  try {
    read_cluster(path);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ClusterFile, ReadsBackAndRefuses) {
  const TestFolder folder;
  const std::string path = folder / "cluster.yaml";
  for (const Cluster& preset : cluster_presets()) {
    std::ofstream(path) << cluster_text(preset);
    const Cluster back = read_cluster(path);
    EXPECT_EQ(cluster_text(back), cluster_text(preset));
    EXPECT_EQ(back.name, preset.name);
  }
  std::ofstream(path) << "preset: h100-8\nnetwork_gb_per_s: 50\n";
  EXPECT_NEAR(read_cluster(path).fabric.network.beta, 50e9, 1);
  EXPECT_NEAR(read_cluster(path).bf16.peak, 989e12, 1);
  std::ofstream(path)
      << "preset: local\nnode_larger: [4096, 2.5, 3, 2097152, 0, 1.5]\nnode_gather: [0, 1, 2, 64, 3, 4]\n";
  const Cluster pieces = read_cluster(path);
  ASSERT_EQ(pieces.fabric.node.larger.size(), 2u);
  EXPECT_NEAR(pieces.fabric.node.larger[0].alpha, 2.5e-6, 1e-15);
  EXPECT_EQ(pieces.fabric.node.larger[1].from, 2097152);
  EXPECT_NEAR(pieces.fabric.node.larger[1].beta, 1.5e9, 1e-3);
  ASSERT_TRUE(pieces.fabric.gather);
  EXPECT_NEAR(pieces.fabric.gather->beta, 2e9, 1e-3);
  EXPECT_NEAR(pieces.fabric.gather->at(64).alpha, 3e-6, 1e-15);
  std::ofstream(path) << cluster_text(pieces);
  EXPECT_EQ(cluster_text(read_cluster(path)), cluster_text(pieces));
  for (const char* bad : {"[4096, 2.5]", "[4096, 2.5, 0]", "[4096, 1, 1, 4096, 1, 1]", "[4096, one, 1]", "3"}) {
    EXPECT_NE(cluster_complaint(std::string("node_larger: ") + bad + "\n").find("three numbers each"),
              std::string::npos)
        << bad;
  }
  EXPECT_NE(cluster_complaint("node_gather: [64, 1, 1]\n").find("node_gather begins at 64 bytes"), std::string::npos);
  EXPECT_NE(cluster_complaint("network_gb_per: 3\n").find("network_gb_per_s"), std::string::npos);
  EXPECT_NE(cluster_complaint("node_gb_per_s: fast\n").find("fast"), std::string::npos);
  EXPECT_NE(cluster_complaint("node_gb_per_s: 0\n").find("above 0"), std::string::npos);
  EXPECT_NE(cluster_complaint("gpus_per_node: 2.5\n").find("2.5"), std::string::npos);
  EXPECT_NE(cluster_complaint("preset: cray-1\n").find("a100-8"), std::string::npos);
  EXPECT_THROW(read_cluster("nowhere"), Error);
}

TEST(PublishedPoints, NetworksHaveTheKnownCosts) {
  EXPECT_EQ(bottleneck_resnet({3, 4, 6, 3}).parameters(), 25557032);
  EXPECT_EQ(bottleneck_resnet({3, 4, 23, 3}).parameters(), 44549160);
  EXPECT_EQ(vgg16().parameters(), 138357544);
  EXPECT_NEAR(bottleneck_resnet({3, 4, 6, 3}).flops() / 2e9, 4.09, 0.01);  // multiply-adds, as torchvision states
  EXPECT_NEAR(vgg16().flops() / 2e9, 15.47, 0.02);
}

// The stated margin: points that no parameter was fitted to within 4 of 100, fitted ones within 2.
TEST(PublishedPoints, PredictedWithinTheMargin) {
  int predicted = 0;
  for (const PublishedPoint& p : published_points()) {
    EXPECT_NEAR(p.predicted, p.published, p.fitted ? 0.02 : 0.04) << p.what << ", " << p.gpus << " GPUs";
    predicted += p.fitted ? 0 : 1;
  }
  EXPECT_GE(predicted, 4);
}

}  // namespace
}  // namespace pal::dist
