// offline_study: oracles on features alone: files of features, the head in closed form, curves, closure, noise.
#include "core/study/offline_study.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/data/feature_set.h"
#include "core/eval/linear_probe.h"
#include "core/io/feature_file.h"
#include "core/io/files.h"
#include "core/oracle/oracle.h"
#include "core/oracle/round/pool.h"
#include "core/oracle/samplers/samplers.h"
#include "core/study/feature_head.h"
#include "core/theory/query_game.h"
#include "core/theory/toy_data.h"
#include "kernels/base/error.h"
#include "tests/core/oracle/oracle_cases.h"
#include "tests/core/spec_of.h"
#include "tests/test_folder.h"

namespace pal::study {
namespace {

// The classes in the first columns, loud noise in the last ones: principal components see the noise first.
StudyData noisy_corners(int64_t n) {
  StudyData data;
  data.classes = 5;
  data.train_labels = oracle::corner_labels(n, 5);
  data.test_labels = oracle::corner_labels(500, 5, 11);
  const auto rows = [](const std::vector<int64_t>& labels, uint64_t step) {
    at::Tensor x = at::zeros({static_cast<int64_t>(labels.size()), 16}, at::kFloat);
    for (int64_t i = 0; i < x.size(0); ++i) {
      Random random(8, Purpose::bench, step, static_cast<uint64_t>(i));
      for (int64_t k = 0; k < 16; ++k)
        x.data_ptr<float>()[i * 16 + k] = static_cast<float>((labels[i] == k) + (k < 8 ? 0.25 : 1.0) * random.normal());
    }
    return x;
  };
  data.train = rows(data.train_labels, 1);
  data.test = rows(data.test_labels, 2);
  return data;
}

setup::RunSpec study_spec(std::vector<std::string> more) {
  std::vector<std::string> settings = {"oracle.budget=300", "oracle.questions_per_round=25",
                                       "oracle.pool=500",   "compare.points=2",
                                       "compare.width=5",   "graph.labeled_fraction=0"};
  settings.insert(settings.end(), more.begin(), more.end());
  return spec_of(settings);
}

TEST(FeatureHead, GoesFromPrincipalComponentsToTheDiscriminant) {
  const StudyData data = noisy_corners(1000);
  FeatureHead head(data.train, 5);
  const auto error = [&] {
    return 1 - eval::linear_probe(head(data.train), data.train_labels, head(data.test), data.test_labels, 5, {}).top1;
  };
  graph::GraphStore store(1000);
  head.see(store);
  head.fit({});
  const double nothing = error();
  store.set_labels(data.train_labels);
  head.see(store);
  head.fit({});
  EXPECT_GT(nothing, 0.5);
  EXPECT_LT(error(), 0.1);
  // The same from answered pairs alone, without deduction.
  graph::GraphStore pairs(1000, graph::Deduction::off);
  for (int64_t i = 0; i + 1 < 1000; ++i)
    pairs.insert(i, i + 1,
                 data.train_labels[i] == data.train_labels[i + 1] ? graph::Relation::same : graph::Relation::different);
  head.see(pairs);
  head.fit({});
  EXPECT_LT(error(), 0.3);
}

// A grid's answers, and a wrong one between every two templates: with deduction all classes become one.
TEST(FeatureHead, WithOneStepOfDeductionAWrongAnswerAffectsOneSample) {
  const StudyData data = noisy_corners(1000);
  FeatureHead head(data.train, 5);
  const auto error = [&](graph::Deduction deduction, bool wrong) {
    graph::GraphStore store(1000, deduction);
    std::vector<int64_t> templates(5, -1);
    for (int64_t i = 0; i < 400; ++i) {
      int64_t& t = templates[data.train_labels[i]];
      if (t >= 0)
        store.insert(t, i, graph::Relation::same);
      else
        t = i;
    }
    for (size_t c = 0; c + 1 < templates.size() && wrong; ++c)
      store.insert(templates[c], templates[c + 1], graph::Relation::same);
    head.see(store);
    head.fit({});
    return 1 - eval::linear_probe(head(data.train), data.train_labels, head(data.test), data.test_labels, 5, {}).top1;
  };
  const double clean = error(graph::Deduction::on, false);
  EXPECT_LT(clean, 0.1);
  EXPECT_NEAR(error(graph::Deduction::once, false), clean, 1e-12) << "the groups are the components";
  EXPECT_NEAR(error(graph::Deduction::once, true), clean, 0.03);
  EXPECT_GT(error(graph::Deduction::on, true), clean + 0.2);
}

TEST(FeatureHead, IsChosenOnAValidationPartOfTheTrainingSet) {
  const StudyData data = noisy_corners(1500);
  const auto part = [&](int64_t begin, int64_t n) {
    return std::vector<int64_t>(data.train_labels.begin() + begin, data.train_labels.begin() + begin + n);
  };
  const HeadSplit split{data.train.narrow(0, 0, 500), data.train.narrow(0, 500, 500), part(0, 500), part(500, 500), 5};
  FeatureHead head(data.train, 5);
  const auto error = [&] {
    return 1 - eval::linear_probe(head(split.train), split.train_labels, head(data.test), data.test_labels, 5, {}).top1;
  };
  // Pairs that agree only in the noise of the last columns.
  graph::GraphStore wrong(1500);
  for (int64_t i = 0; i + 1 < 1500; i += 2) wrong.insert(i, i + 1, graph::Relation::same);
  head.see(wrong);
  const HeadOptions doubtful = choose_head(head, split, {.iterations = 20});
  graph::GraphStore right(1500);
  std::vector<int64_t> some(1500, -1);
  for (int64_t i = 1000; i < 1200; ++i) some[i] = data.train_labels[i];
  right.set_labels(some);
  head.see(right);
  const HeadOptions chosen = choose_head(head, split, {.iterations = 20});
  EXPECT_LT(chosen.prior, doubtful.prior) << "an informative graph gets a smaller prior";
  const double best = error();
  EXPECT_LT(best, 0.15);
  head.fit(chosen);
  EXPECT_EQ(error(), best) << "it is fitted with what was chosen";
}

TEST(OfflineStudy, CaptchaLearnsMoreThanRandomPairs) {
  const StudyData data = noisy_corners(1000);
  const auto curve = [&](const std::string& sampler, const StudyLine& line = {"x"}) {
    return run_study(study_spec({"oracle.sampler=" + sampler}), line, data);
  };
  const std::vector<StudyPoint> captcha = curve("captcha"), pairs = curve("supervised"), ssl = curve("ssl");
  ASSERT_EQ(captcha.size(), 3u);
  EXPECT_EQ(captcha[0].questions, 0);
  EXPECT_EQ(captcha[2].questions, 300);
  EXPECT_DOUBLE_EQ(captcha[2].cost, 300);
  EXPECT_EQ(ssl[2].questions, 0);
  EXPECT_EQ(captcha[0].linear, ssl[2].linear) << "nothing is known yet";
  EXPECT_LT(captcha[2].linear, ssl[2].linear - 0.3);
  EXPECT_LT(captcha[2].own, 0.2);
  EXPECT_GT(captcha[2].known, 10 * pairs[2].known);
  EXPECT_LT(captcha[2].components, captcha[0].components - 100);
  // Free of charge when answers are assumed.
  const std::vector<StudyPoint> free = curve("nnclr", {"nnclr", StudyAnswers::assumed});
  EXPECT_EQ(free[2].cost, 0);
  EXPECT_GT(free[2].questions, 200);
  // A second run gives the same result.
  const std::vector<StudyPoint> again = curve("captcha");
  for (size_t k = 0; k < again.size(); ++k) EXPECT_EQ(again[k].linear, captcha[k].linear);
}

TEST(OfflineStudy, ClosureCountsItsQuestions) {
  StudyData data = noisy_corners(600);
  data.train.narrow(1, 8, 8).zero_();
  const auto found = [&](const std::string& guide) {
    return run_to_closure(study_spec({"oracle.sampler=captcha", "oracle.class_guess=" + guide, "oracle.pool=200"}),
                          data);
  };
  const Closure blind = found("none"), guided = found("classifier");
  EXPECT_TRUE(blind.complete && blind.right);
  EXPECT_TRUE(guided.complete && guided.right);
  EXPECT_LE(blind.questions, 600 * 5);
  EXPECT_GT(blind.questions, 2 * guided.questions * 2 / 3);
  EXPECT_LT(guided.questions, 600 * 13 / 10);
}

// Files of a folder are sorted by class: the first ones would be of a few classes.
TEST(Study, DataLimitDrawsSamples) {
  const TestFolder folder;
  StudyData data = noisy_corners(200);
  std::sort(data.train_labels.begin(), data.train_labels.end());
  const auto write = [&](const std::string& name, const at::Tensor& rows, const std::vector<int64_t>& labels) {
    io::write_feature_file(folder / name, {.features = rows, .labels = labels, .ids = {}, .classes = {}, .about = {}});
    return folder / name;
  };
  const std::string train = write("train.npy", data.train, data.train_labels);
  const std::string test = write("test.npy", data.test, data.test_labels);
  const StudyData read = read_study_data(study_spec({"data.train=" + train, "data.test=" + test, "data.limit=100"}));
  ASSERT_EQ(read.train_labels.size(), 100u);
  std::vector<int64_t> counts(5, 0);
  for (const int64_t label : read.train_labels) ++counts[label];
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 5);
  for (int64_t i = 0, at = 0; i < 100; ++i, ++at) {  // rows and labels go together
    while (at < 200 && !read.train[i].equal(data.train[at])) ++at;
    ASSERT_LT(at, 200);
    EXPECT_EQ(read.train_labels[i], data.train_labels[at]);
  }
}

TEST(FeatureFiles, AreReadBackAndRefusedWithASentence) {
  const TestFolder folder;
  const StudyData data = noisy_corners(20);
  for (const char* name : {"x.npy", "x.h5"}) {
    const std::string path = folder / name;
    io::write_feature_file(
        path, {.features = data.train, .labels = data.train_labels, .ids = {}, .classes = {}, .about = {}});
    ASSERT_TRUE(data::is_feature_file(path));
    const data::FeatureSet back = data::read_features(path);
    EXPECT_TRUE(back.rows.equal(data.train)) << name;
    EXPECT_EQ(back.labels, data.train_labels) << name;
  }
  const auto refused = [&](const std::string& bytes) {
    const std::string path = folder / "bad.npy";
    io::write_file_atomically(path, bytes);
    try {
      data::read_features(path);
    } catch (const Error& e) {
      return e.code() == Exit::data;
    }
    return false;
  };
  const std::string good = io::read_whole_file(folder / "x.npy");
  EXPECT_TRUE(refused(good.substr(0, good.size() - 1)));
  EXPECT_TRUE(refused(good.substr(0, 20)));
  EXPECT_TRUE(refused("riddle"));
  std::string other = good;
  other.replace(other.find("<f4"), 3, "<c8");
  EXPECT_TRUE(refused(other));
  other = good;
  other.replace(other.find("False"), 5, "True ");
  EXPECT_TRUE(refused(other));
  other = good;
  const float nan = std::nanf("");
  other.replace(other.size() - 4, 4, reinterpret_cast<const char*>(&nan), 4);
  EXPECT_TRUE(refused(other));
  EXPECT_THROW(data::read_features(folder / "none.npy"), Error);
  // Version 2 has headers of any length.
  const auto with_header = [](const std::string& header) {
    const auto length = static_cast<uint32_t>(header.size());
    return "\x93NUMPY\x02" + std::string(1, '\0') + std::string(reinterpret_cast<const char*>(&length), 4) + header;
  };
  const std::string type(50'000, 'x'), blanks(2'000'000, ' '), order = ", 'fortran_order': False, 'shape': (";
  EXPECT_TRUE(refused(with_header("{'descr': '" + type + "'" + order + "1, 1)}")));
  EXPECT_TRUE(refused(with_header("{'descr': '<f4'" + order + blanks + "1, 1)}") + "1234"));
  EXPECT_TRUE(refused(with_header("{'descr': '<f4'" + order + "4294967296, 4294967296)}")));
  EXPECT_TRUE(refused(with_header("{'descr': '<f4'" + order + "-1, -1)}") + "1234"));
  EXPECT_FALSE(refused(with_header("{'descr': '<f4'" + order + "1, 1)}") + "1234"));
}

// The captcha of the kernel experiments (core/theory/query_game.h) and this one on the circles.
struct Circles {
  explicit Circles(uint64_t seed) {
    Random random(seed, Purpose::theory);
    const theory::ToySet circles = theory::toy_train(theory::ToyKind::circles, 60, 0.1, random);
    small.assign(circles.y.begin(), circles.y.end());
    const int low = *std::min_element(small.begin(), small.end());
    for (int& y : small) y -= low;
    labels.assign(small.begin(), small.end());
    templates.assign(60, -1);
    for (int c = 0; c < 4; ++c) templates[std::find(small.begin(), small.end(), c) - small.begin()] = c;
    store.set_labels(templates);
  }
  std::vector<int> small;
  std::vector<int64_t> labels, templates;
  graph::GraphStore store{60};
};

// The questions of the kernel experiments, inserted into our store: both infer the same relations, entry by entry.
TEST(OfflineStudy, InfersTheSameAsTheCaptchaOfTheKernelExperiments) {
  Circles c(4);
  theory::CaptchaGame game(c.small, 4);
  Random random(5, Purpose::theory);
  theory::Matrix graph(60, 60);
  for (int step = 0; step < 40; ++step) {
    const theory::CaptchaGame::Query q = game.choose({}, 10, random);
    game.answer(q);
    const auto at = std::find(c.templates.begin(), c.templates.end(), q.against) - c.templates.begin();
    for (int p : q.points)
      c.store.insert(at, p, c.labels[p] == q.against ? graph::Relation::same : graph::Relation::different);
    game.graph(graph, -1);
    for (int64_t i = 0; i < 60; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        if (graph(i, j) != 0) {
          ASSERT_EQ(graph(i, j) > 0 ? graph::Relation::same : graph::Relation::different, c.store.relation(i, j))
              << i << " " << j << " step " << step;
        }
      }
    }
  }
}

// Both ask on their own until the class of every point is known: the same graph after about as many questions.
TEST(OfflineStudy, EndsWhereTheCaptchaOfTheKernelExperimentsEnds) {
  double theirs = 0, ours = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Circles c(seed);
    theory::CaptchaGame game(c.small, 4);
    Random random(seed, Purpose::theory, 1);
    const auto all_known = [&] { return std::count(game.known().begin(), game.known().end(), 1) == 60; };
    for (int step = 0; step < 1000 && !all_known(); ++step) game.answer(game.choose({}, 10, random));
    ASSERT_TRUE(all_known()) << seed;
    theirs += static_cast<double>(game.questions());

    const auto sampler = oracle::make_query_sampler(
        spec_of({"oracle.sampler=captcha", "oracle.class_guess=none", "oracle.members=10"}).oracle);
    int64_t questions = 0;
    for (int64_t round = 0; round < 1000 && c.store.components() > 4; ++round) {
      for (const oracle::Query& q : sampler->choose(c.store, {oracle::draw_pool(c.store, 60, seed, round), {}},
                                                    {.seed = seed, .round = round, .questions = 10})) {
        questions += static_cast<int64_t>(q.members.size());
        for (int64_t m : q.members)
          c.store.insert(
              q.template_sample, m,
              c.labels[m] == c.labels[q.template_sample] ? graph::Relation::same : graph::Relation::different);
      }
    }
    ASSERT_EQ(c.store.components(), 4) << seed;
    EXPECT_LE(questions, 60 * 4);
    ours += static_cast<double>(questions);
    theory::Matrix graph(60, 60);
    game.graph(graph, -1);
    for (int64_t i = 0; i < 60; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        if (graph(i, j) != 0) {
          EXPECT_EQ(graph(i, j) > 0, c.store.relation(i, j) == graph::Relation::same) << i << " " << j;
        }
      }
    }
  }
  EXPECT_NEAR(ours / theirs, 1, 0.15) << ours << " questions against " << theirs;
}

}  // namespace
}  // namespace pal::study
