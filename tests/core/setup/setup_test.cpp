// setup: samples, labels and graph from the settings of a run; run_spec: each key of the config in its struct.
#include "core/setup/setup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "core/io/cores.h"
#include "core/optim/schedule.h"
#include "kernels/base/error.h"
#include "tests/core/spec_of.h"
#include "tests/test_folder.h"

namespace pal::setup {
namespace {

// Labels only: sample s has label s mod `classes` and every tenth has none; with −1 classes none has.
class Labels final : public data::Dataset {
 public:
  explicit Labels(int64_t n, int64_t classes = 5) {
    for (int64_t s = 0; s < n; ++s) labels_.push_back(classes < 0 || s % 10 == 9 ? -1 : s % classes);
  }
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  data::Encoding encoding() const override { return data::Encoding::raw; }
  std::vector<int32_t> shape() const override { return {1, 1, 1}; }
  const std::vector<int64_t>& labels() const override { return labels_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t fingerprint() const override { return 0; }
  void read(int64_t, std::vector<uint8_t>&) const override {}
  kernels::ImageView image(int64_t, const std::vector<uint8_t>&) const override { return {}; }

 private:
  std::vector<int64_t> labels_;
  std::vector<std::string> classes_;
};

RunSpec spec_with(std::vector<std::string> settings) {
  settings.insert(settings.end(), {"train.steps=100", "optim.lr=1"});
  return spec_of(settings);
}

TEST(Setup, SubsetIsDrawnByTheSeed) {
  const Labels data(1000);
  EXPECT_EQ(training_subset(spec_with({}), data).size(), 1000u);
  EXPECT_EQ(training_subset(spec_with({"data.limit=5000"}), data).size(), 1000u);
  const auto a = training_subset(spec_with({"data.limit=100"}), data);
  EXPECT_EQ(a.size(), 100u);
  EXPECT_TRUE(std::is_sorted(a.begin(), a.end()));
  EXPECT_EQ(std::set<int64_t>(a.begin(), a.end()).size(), 100u);
  EXPECT_EQ(a, training_subset(spec_with({"data.limit=100"}), data));
  EXPECT_NE(a, training_subset(spec_with({"data.limit=100", "train.seed=1"}), data));
}

TEST(Setup, KnownLabelsAreAShareOfTheSubset) {
  const Labels data(1000);
  const auto subset = training_subset(spec_with({"data.limit=500"}), data);
  const auto count = [](const std::vector<int64_t>& labels) {
    return std::count_if(labels.begin(), labels.end(), [](int64_t l) { return l >= 0; });
  };
  EXPECT_EQ(count(known_labels(spec_with({"graph.kind=ssl"}), data, subset)), 0);
  const auto all = known_labels(spec_with({"graph.kind=supervised"}), data, subset);
  EXPECT_EQ(count(all), std::count_if(subset.begin(), subset.end(), [&](int64_t s) { return data.labels()[s] >= 0; }));
  const auto some = known_labels(spec_with({"graph.kind=mixed", "graph.labeled_fraction=0.1"}), data, subset);
  EXPECT_EQ(count(some), std::llround(0.1 * static_cast<double>(count(all))));
  for (int64_t s = 0; s < data.size(); ++s) {
    if (some[s] < 0) continue;
    EXPECT_EQ(some[s], data.labels()[s]);
    EXPECT_TRUE(std::binary_search(subset.begin(), subset.end(), s));
  }
}

TEST(Setup, CaptchaWithoutLabelsGetsOneTemplatePerClass) {
  const Labels data(1000);
  const auto subset = training_subset(spec_with({}), data);
  const auto known =
      known_labels(spec_with({"graph.kind=mixed", "graph.labeled_fraction=0", "oracle.sampler=captcha"}), data, subset);
  std::multiset<int64_t> classes;
  for (int64_t l : known) {
    if (l >= 0) classes.insert(l);
  }
  EXPECT_EQ(classes, (std::multiset<int64_t>{0, 1, 2, 3, 4}));
}

TEST(Setup, GroupsTakeThePlaceOfLabels) {
  const TestFolder folder;
  std::ofstream(folder / "m.csv") << "file,patient\n0,ann\n2,bob\n3,ann\n9,\n";
  const Labels data(10);
  const std::string groups = "graph.groups=" + (folder / "m.csv") + ":patient";
  const RunSpec spec = spec_with({"graph.kind=supervised", groups});
  const auto known = known_labels(spec, data, training_subset(spec, data));
  EXPECT_EQ(known, (std::vector<int64_t>{0, -1, 1, 0, -1, -1, -1, -1, -1, -1}));
  const graph::GraphStore store = make_graph_store(spec.graph, data, known);
  EXPECT_EQ(store.relation(0, 3), graph::Relation::same);
  EXPECT_EQ(store.component_size(1), 1);
  EXPECT_EQ(edge_samples(spec, 4, 10, graph::EdgeDraw(store, training_subset(spec, data))), 64);
  EXPECT_THROW(spec_with({"graph.kind=ssl", groups}), Error);
}

TEST(Setup, PeopleMayBeAskedAboutGroups) {
  const TestFolder folder;
  std::ofstream(folder / "m.csv") << "file,patient\n0,ann\n2,bob\n3,ann\n9,\n";
  const Labels data(10);
  const std::string groups = "graph.groups=" + (folder / "m.csv") + ":patient";
  const RunSpec spec = spec_with({"graph.kind=mixed", groups, "oracle.sampler=captcha", "oracle.labeler=exchange"});
  const auto subset = training_subset(spec, data);
  const auto labels = known_labels(spec, data, subset), known = known_groups(spec, data, subset);
  EXPECT_EQ(labels, std::vector<int64_t>(10, -1)) << "a group is no class";
  EXPECT_EQ(known, (std::vector<int64_t>{0, -1, 1, 0, -1, -1, -1, -1, -1, -1}));
  graph::GraphStore store = make_graph_store(spec.graph, data, labels, known);
  EXPECT_EQ(store.relation(0, 3), graph::Relation::same);
  EXPECT_EQ(store.relation(0, 2), graph::Relation::unknown);
  store.insert(2, 3, graph::Relation::same);
  EXPECT_EQ(store.relation(0, 2), graph::Relation::same);
  EXPECT_EQ(checked_oracle(spec, data, 0).templates, oracle::Templates::discover);
  EXPECT_TRUE(known_groups(spec_with({"graph.kind=mixed", groups}), data, subset).empty());
  EXPECT_THROW(spec_with({"graph.kind=mixed", groups, "oracle.sampler=random", "graph.deduction=once"}), Error);
}

TEST(Setup, AGraphOfLabelsNeedsLabels) {
  const Labels data(3, -1);
  try {
    known_labels(spec_with({"graph.kind=supervised"}), data, {0, 1, 2});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::data);
    EXPECT_NE(std::string(e.what()).find("graph.kind=supervised"), std::string::npos);
  }
}

TEST(Setup, QuestionsAboutImagesWithoutLabels) {
  const Labels data(30, -1);
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> settings = {"oracle.sampler=captcha"};
    settings.insert(settings.end(), more.begin(), more.end());
    try {
      checked_oracle(spec_with(settings), data, 0);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal({}).find("set oracle.labeler=exchange and let people answer"), std::string::npos);
  EXPECT_NE(refusal({"oracle.labeler=exchange", "oracle.templates=given"}).find("oracle.templates=discover"),
            std::string::npos);
  EXPECT_EQ(refusal({"oracle.labeler=exchange"}), "");
}

TEST(Setup, NoisyLabelsAreAFunctionOfTheSample) {
  const Labels data(5000);
  const auto labels = known_labels(spec_with({"graph.kind=supervised"}), data, training_subset(spec_with({}), data));
  const graph::GraphStore clean = make_graph_store(spec_with({}).graph, data, labels),
                          noisy = make_graph_store(spec_with({"graph.label_noise=0.4"}).graph, data, labels);
  int64_t labeled = 0, changed = 0;
  for (int64_t s = 0; s < data.size(); ++s) {
    ASSERT_EQ(clean.label(s), labels[s]);
    ASSERT_EQ(noisy.label(s) >= 0, labels[s] >= 0);
    labeled += labels[s] >= 0;
    changed += noisy.label(s) != labels[s];
  }
  EXPECT_NEAR(static_cast<double>(changed) / static_cast<double>(labeled), 0.4 * 4 / 5, 0.04)
      << "a fifth falls back on its class";
  EXPECT_EQ(noisy.fingerprint(),
            make_graph_store(spec_with({"graph.label_noise=0.4"}).graph, data, labels).fingerprint());
}

TEST(Setup, ScheduleFromBaseRateAndEpochs) {
  const RunSpec c =
      spec_of({"train.epochs=20", "optim.base_lr=0.2", "train.global_batch=512", "optim.warmup_epochs=1"});
  const optim::Schedule s = schedule(c, 30);
  EXPECT_DOUBLE_EQ(s.peak, 0.4);
  EXPECT_EQ(s.total_steps, 600);
  EXPECT_EQ(s.warmup_steps, 30);
  EXPECT_EQ(schedule(spec_with({"optim.warmup_epochs=10"}), 30).warmup_steps, 10);  // at most a tenth of the run
  EXPECT_EQ(compute_threads(spec_with({"train.threads=3"}).train, 2), 3);
  EXPECT_EQ(compute_threads(spec_with({}).train, 0.25), 1);
  EXPECT_EQ(compute_threads(spec_with({}).train, 2.5), 2);
  EXPECT_EQ(compute_threads(spec_with({}).train, 3 * (1.0 / 3)), 1);
  EXPECT_GE(io::usable_cores(), 1);
}

// 1,000 samples; the first `labeled` have labels of so many classes.
int64_t edge_samples_of(const std::vector<std::string>& overrides, int64_t labeled, int64_t classes = 10) {
  std::vector<int64_t> labels(1000, -1), all(1000);
  std::iota(all.begin(), all.end(), int64_t{0});
  for (int64_t s = 0; s < labeled; ++s) labels[s] = s % classes;
  graph::GraphStore store(1000);
  store.set_labels(labels);
  return edge_samples(spec_with(overrides), labeled, 1000, graph::EdgeDraw(store, all));
}

TEST(Setup, EdgeSamplesWhenSomeLabelsAreKnown) {
  const auto of = [](const std::vector<std::string>& overrides, int64_t labeled) {
    return edge_samples_of(overrides, labeled);
  };
  EXPECT_EQ(of({"graph.kind=mixed", "train.global_batch=256"}, 10), 64);
  EXPECT_EQ(of({"graph.kind=supervised", "train.global_batch=10", "graph.edge_share=0.25"}, 10), 2);
  EXPECT_EQ(of({"graph.kind=ssl"}, 0), 0);
  EXPECT_EQ(of({"graph.kind=supervised"}, 1000), 0);
  EXPECT_EQ(of({"graph.kind=mixed"}, 0), 0);
  EXPECT_EQ(of({"graph.kind=mixed", "oracle.sampler=captcha"}, 0), 64);
  EXPECT_EQ(of({"graph.kind=mixed", "graph.edge_share=0"}, 10), 0);
}

TEST(Setup, EdgeSamplesWhenAllLabelsAreKnownAndSeldomMeet) {
  const std::vector<std::string> small = {"graph.kind=supervised", "train.global_batch=64"};
  EXPECT_EQ(edge_samples_of(small, 1000, 10), 0);
  EXPECT_EQ(edge_samples_of(small, 1000, 50), 0);    // 19 partners: 70 % of the rows find one
  EXPECT_EQ(edge_samples_of(small, 1000, 250), 16);  // 3 partners: 18 %
  EXPECT_EQ(edge_samples_of({"graph.kind=supervised", "train.global_batch=512"}, 1000, 250), 0);  // 87 %
  EXPECT_EQ(edge_samples_of({"graph.kind=mixed", "train.global_batch=64"}, 1000, 250), 16);
  EXPECT_EQ(edge_samples_of({"graph.kind=table", "train.global_batch=64"}, 1000, 250), 0);  // a class has weight 0
}

// Every choice of every key has a value in its struct: a name of the table of keys that the struct lacks throws.
TEST(RunSpec, EveryChoiceIsRead) {
  for (const config::KeySpec& key : config::config_keys()) {
    for (const std::string& choice : key.choices) {
      std::vector<std::string> settings = {key.name + "=" + choice};
      if (choice == "pairs") settings.insert(settings.end(), {"graph.pairs=p.csv", "oracle.pairs=p.csv"});
      if (choice == "regression" || choice == "ranking") settings.push_back("graph.targets=t.csv");
      if (choice == "nvjpeg") settings.push_back("data.decode=full");
      if (key.name == "loss.kind") settings.push_back("graph.kind=mixed");
      EXPECT_NO_THROW(spec_of(settings)) << key.name << "=" << choice;
    }
  }
}

TEST(RunSpec, KeysThatAreNotSetAreEmpty) {
  const RunSpec spec = spec_of();
  EXPECT_FALSE(spec.train.steps || spec.train.epochs || spec.optim.lr || spec.optim.base_lr || spec.loss.self_loops);
  EXPECT_TRUE(spec.data.train.empty() && spec.data.test.empty() && spec.model.init.empty() && spec.graph.pairs.empty());
  EXPECT_FALSE(spec.oracle.asks());
  EXPECT_EQ(spec.config.dump(), config::Config::defaults().dump());
}

TEST(RunSpec, ChoicesAndListsReachTheirStructs) {
  const RunSpec spec = spec_of({"train.dtype=float64", "model.backbone=vit_b", "loss.kind=simclr", "optim.kind=adamw",
                                "graph.kind=signed", "oracle.wait=exit", "train.watchdog=off", "train.hang_seconds=7",
                                "train.start_seconds=45", "train.deterministic=on", "train.seed=9",
                                "augment.crop_scale=[0.1, 0.5]", "graph.self_loops=on", "oracle.budget=12"});
  EXPECT_EQ(spec.train.dtype, at::kDouble);
  EXPECT_EQ(spec.loss.dtype, at::kDouble);
  EXPECT_EQ(spec.model.dtype, at::kDouble);
  EXPECT_EQ(spec.model.backbone, model::BackboneKind::vit_b);
  EXPECT_EQ(spec.loss.kind, loss::LossKind::simclr);
  EXPECT_EQ(spec.optim.kind, optim::OptimizerKind::adamw);
  EXPECT_EQ(spec.graph.kind, graph::GraphKind::signs);
  EXPECT_EQ(spec.oracle.wait, oracle::WhileWaiting::exit);
  EXPECT_FALSE(spec.train.watchdog);
  EXPECT_EQ(spec.train.hang_seconds, 7);
  EXPECT_EQ(spec.train.start_seconds, 45);
  EXPECT_TRUE(spec.train.deterministic);
  EXPECT_EQ(spec.train.heartbeat_seconds, 10);
  for (const uint64_t seed :
       {spec.train.seed, spec.augment.seed, spec.model.seed, spec.graph.seed, spec.loss.seed, spec.oracle.seed}) {
    EXPECT_EQ(seed, 9u);
  }
  EXPECT_EQ(spec.augment.crop_scale.max, 0.5);
  EXPECT_EQ(spec.loss.self_loops, graph::SelfLoops::on);
  EXPECT_EQ(spec.oracle.limits.questions, 12);
}

// 25/25/1 with 16 columns collapses on CIFAR-10 within 50 steps; wide projectors, larger weights and views alone do
// not.
TEST(RunSpec, InstructionsHoldCommas) {
  const auto instructions = [](const std::string& value) {
    return label_spec(config::Config::defaults({"label.instructions=" + value})).instructions;
  };
  EXPECT_EQ(instructions("Look at the shape, not at: the color."), "Look at the shape, not at: the color.");
  EXPECT_EQ(instructions("[\"One, two.\", Three.]"), "One, two.\nThree.");
  EXPECT_EQ(instructions("[]"), "");
  const config::Config config = config::Config::defaults({"label.instructions=a, b", "train.steps=1", "optim.lr=1"});
  const TestFolder folder;
  std::ofstream(folder / "c.yaml") << config.dump();
  EXPECT_EQ(label_spec(config::Config::load_resolved(folder / "c.yaml")).instructions, "a, b");
}

TEST(RunSpec, WeightsThatCollapseOnLabelsAreNamed) {
  const std::string narrow = "model.projector=[64, 16]", labels = "graph.kind=supervised";
  const std::string sentence = collapse_warning(spec_of({narrow, labels}));
  EXPECT_NE(sentence.find("16 columns"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("try loss.variance=50 loss.covariance=10"), std::string::npos) << sentence;
  EXPECT_NE(collapse_warning(spec_of({narrow, "graph.kind=mixed"})), "");
  for (const std::vector<std::string>& fine : {std::vector<std::string>{narrow},
                                               {labels},
                                               {narrow, "graph.kind=mixed", "graph.labeled_fraction=0.01"},
                                               {narrow, labels, "loss.variance=50", "loss.covariance=10"},
                                               {narrow, labels, "loss.kind=simclr"},
                                               {narrow, labels, "graph.groups=meta.csv:patient"},
                                               {"model.projector=[256, 128]", labels}}) {
    EXPECT_EQ(collapse_warning(spec_of(fine)), "") << fine.back();
  }
}

}  // namespace
}  // namespace pal::setup
