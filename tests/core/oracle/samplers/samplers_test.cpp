// samplers: the rules that every sampler follows, and the choices of each of them.
#include "core/oracle/samplers/samplers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/oracle/labeler.h"
#include "core/oracle/round/pool.h"
#include "kernels/base/error.h"
#include "tests/core/oracle/oracle_cases.h"
#include "tests/core/spec_of.h"

namespace pal::oracle {
namespace {

std::unique_ptr<QuerySampler> sampler_of(const std::vector<std::string>& settings) {
  return make_query_sampler(spec_of(settings).oracle, kTree);
}

class EverySampler : public testing::TestWithParam<std::string> {
 protected:
  std::vector<std::string> settings() const { return {"oracle.sampler=" + GetParam(), "oracle.members=6"}; }
};

TEST_P(EverySampler, AsksOnlyOpenPairsAndOnceInARound) {
  const std::vector<int64_t> labels = corner_labels(400, 4);
  const auto sampler = sampler_of(settings());
  const auto labeler = make_labeler(spec_of().oracle, LabelerContext{labels, kTree});
  for (graph::Deduction deduction : {graph::Deduction::on, graph::Deduction::once, graph::Deduction::off}) {
    graph::GraphStore store(400, deduction);
    store.set_labels(draw_template_labels(labels, 1));
    std::set<std::tuple<int64_t, int64_t, int64_t>> before;
    std::vector<Decision> coarse;
    int64_t questions = 0;
    for (int64_t r = 0; r < 12; ++r) {
      Pool pool{draw_pool(store, 250, 7, r), {}};
      pool.embeddings = corner_rows(pool.samples, labels, 0.4);
      const std::vector<Query> queries =
          sampler->choose(store, pool, {.seed = 7, .round = r, .questions = 23, .pending = {}, .coarse = coarse});
      ASSERT_LE(question_count(queries), 23);
      std::set<int64_t> units;
      for (const Query& q : queries) {
        for (int64_t m : q.members) {
          EXPECT_EQ(store.relation(q.template_sample, m), graph::Relation::unknown);
          EXPECT_TRUE(before.insert({q.node, std::min(m, q.template_sample), std::max(m, q.template_sample)}).second)
              << "asked twice";
          EXPECT_TRUE(units.insert(deduction == graph::Deduction::on ? store.component(m) : m).second)
              << "twice in a round";
          EXPECT_TRUE(std::binary_search(pool.samples.begin(), pool.samples.end(), m)) << "not in the pool";
        }
      }
      for (const Query& q : queries) {
        const std::vector<Decision> decisions = as_decisions(q, labeler->answer(q));
        EXPECT_TRUE(insert_answers(store, decisions).contradicted.empty());
        if (q.kind == QueryKind::coarse) coarse.insert(coarse.end(), decisions.begin(), decisions.end());
      }
      questions += question_count(queries);
    }
    EXPECT_GE(questions, 12 * 23 / 2) << "a sampler asks in a set of which little is known";
  }
}

TEST_P(EverySampler, IgnoresTheOrderOfThePoolAndSkipsPendingPairs) {
  const std::vector<int64_t> labels = corner_labels(300, 4);
  const auto sampler = sampler_of(settings());
  graph::GraphStore store(300);
  store.set_labels(draw_template_labels(labels, 2));
  Pool pool{draw_pool(store, 200, 9, 4), {}};
  pool.embeddings = corner_rows(pool.samples, labels, 0.5);
  const Round round{.seed = 9, .round = 4, .questions = 30};
  const std::vector<Query> first = sampler->choose(store, pool, round);
  ASSERT_FALSE(first.empty());

  Pool shuffled;
  std::vector<int64_t> order;
  for (int64_t k = 0; k < 200; ++k) order.push_back((k * 37 + 11) % 200);
  for (int64_t k : order) shuffled.samples.push_back(pool.samples[k]);
  shuffled.embeddings = pool.embeddings.index_select(0, at::tensor(order, at::kLong));
  EXPECT_EQ(asked(sampler->choose(store, shuffled, round)), asked(first));

  std::set<int64_t> pending;
  for (const Query& q : first) pending.insert(q.members.begin(), q.members.end());
  for (const Query& q : sampler->choose(store, pool, {.seed = 9, .round = 5, .questions = 30, .pending = first})) {
    for (int64_t m : q.members) EXPECT_EQ(pending.count(m), 0u);
  }
  EXPECT_TRUE(sampler->choose(store, {{}, {}}, round).empty());
  EXPECT_TRUE(sampler->choose(store, pool, {.seed = 9, .round = 4, .questions = 0}).empty());
}

// Every sampler of the table that asks.
std::vector<std::string> asking_samplers() {
  std::vector<std::string> names = sampler_names();
  std::erase(names, "ssl");
  return names;
}
INSTANTIATE_TEST_SUITE_P(Oracle, EverySampler, testing::ValuesIn(asking_samplers()),
                         [](const auto& info) { return info.param; });

// Two classes at the ends of a quarter circle, points between them: sample s at angle s° for 0 ≤ s ≤ 90.
struct Arc {
  Arc() : store(91) {
    std::vector<int64_t> labels(91, -1);
    labels[0] = labels[1] = labels[2] = 0;
    labels[90] = labels[89] = labels[88] = 1;
    store.set_labels(labels);
    for (int64_t s = 0; s <= 90; ++s) pool.samples.push_back(s);
    pool.embeddings = at::empty({91, 2}, at::kFloat);
    for (int64_t s = 0; s <= 90; ++s) {
      pool.embeddings.data_ptr<float>()[2 * s] =
          static_cast<float>(std::cos(static_cast<double>(s) * 3.14159265 / 180));
      pool.embeddings.data_ptr<float>()[2 * s + 1] =
          static_cast<float>(std::sin(static_cast<double>(s) * 3.14159265 / 180));
    }
  }
  std::vector<int64_t> members(const std::vector<std::string>& settings, int64_t questions) const {
    std::vector<int64_t> all;
    for (const Query& q : sampler_of(settings)->choose(store, pool, {.seed = 1, .round = 0, .questions = questions}))
      all.insert(all.end(), q.members.begin(), q.members.end());
    std::sort(all.begin(), all.end());
    return all;
  }
  graph::GraphStore store;
  Pool pool;
};

TEST(Uncertainty, AsksAboutTheBoundary) {
  const Arc arc;
  for (const char* measure : {"entropy", "margin", "boundary"}) {
    for (int64_t s : arc.members({"oracle.sampler=uncertainty", std::string("oracle.measure=") + measure}, 2)) {
      EXPECT_GE(s, 40) << measure;
      EXPECT_LE(s, 50) << measure;
    }
  }
  for (int64_t s : arc.members({"oracle.sampler=model_change"}, 2)) EXPECT_TRUE(s >= 35 && s <= 55) << s;
  for (int64_t s : arc.members({"oracle.sampler=gradients"}, 1)) EXPECT_TRUE(s >= 35 && s <= 55) << s;
}

TEST(KCenter, AsksAboutThePointFarthestFromAllKnownOnes) {
  const Arc arc;
  EXPECT_EQ(arc.members({"oracle.sampler=k_center"}, 1), (std::vector<int64_t>{45}));
  const std::vector<int64_t> three = arc.members({"oracle.sampler=k_center"}, 3);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_NEAR(static_cast<double>(three[0]), 23.5, 1.6);
  EXPECT_NEAR(static_cast<double>(three[2]), 66.5, 1.6);
}

TEST(Pruning, AsksNearTheCentersFirstAndFarFromThemLater) {
  const Arc arc;
  const std::vector<int64_t> near =
      arc.members({"oracle.sampler=pruning", "oracle.clusters=1", "oracle.pruning_near_until=1000"}, 2);
  for (int64_t s : near) EXPECT_NEAR(static_cast<double>(s), 45, 2);
  const std::vector<int64_t> far =
      arc.members({"oracle.sampler=pruning", "oracle.clusters=1", "oracle.pruning_near_until=1"}, 2);
  EXPECT_EQ(far, (std::vector<int64_t>{3, 87}));
}

TEST(Typical, AsksTheDensestPointOfAnUncoveredCluster) {
  // Class 0 is known at corner 0; a dense and a loose cloud at corners 1 and 2 are not.
  std::vector<int64_t> labels(60, 1);
  for (int64_t s = 0; s < 20; ++s) labels[s] = 0;
  for (int64_t s = 50; s < 60; ++s) labels[s] = 2;
  graph::GraphStore store(60);
  std::vector<int64_t> known(60, -1);
  known[0] = known[1] = 0;
  store.set_labels(known);
  const std::vector<Query> queries =
      sampler_of({"oracle.sampler=typical"})
          ->choose(store, whole_pool(labels, 0.02), {.seed = 1, .round = 0, .questions = 2});
  std::set<int64_t> classes;
  for (const Query& q : queries) {
    for (int64_t m : q.members) classes.insert(labels[m]);
  }
  EXPECT_EQ(classes, (std::set<int64_t>{1, 2}));
}

TEST(Ensemble, AsksWhereHeadsDisagree) {
  const Arc arc;
  for (int64_t s : arc.members({"oracle.sampler=ensemble", "oracle.heads=16"}, 2)) EXPECT_TRUE(s >= 35 && s <= 55) << s;
  EXPECT_THROW(sampler_of({"oracle.sampler=ensemble", "oracle.heads=1"}), Error);
}

TEST(Nnclr, AsksNeighborsOfTheSupportOrOfTheBatch) {
  const std::vector<int64_t> labels = corner_labels(400, 4);
  const Pool pool = whole_pool(labels, 0.05);
  graph::GraphStore store(400);
  const auto same = [&](const std::vector<std::string>& settings, size_t* count) {
    double right = 0;
    const std::vector<Query> queries =
        sampler_of(settings)->choose(store, pool, {.seed = 1, .round = 0, .questions = 40});
    for (const Query& q : queries) {
      EXPECT_EQ(q.kind, QueryKind::pair);
      right += labels[q.template_sample] == labels[q.members[0]];
    }
    *count = queries.size();
    return right / static_cast<double>(queries.size());
  };
  size_t count = 0;
  EXPECT_EQ(same({"oracle.sampler=nnclr", "oracle.support=300"}, &count), 1.0);
  EXPECT_GE(count, 25u);
  EXPECT_EQ(same({"oracle.sampler=nnclr", "oracle.support=0", "oracle.neighbors=5"}, &count), 1.0);
  EXPECT_GE(count, 20u);
  EXPECT_TRUE(sampler_of({"oracle.sampler=nnclr", "oracle.neighbors=0"})
                  ->choose(store, pool, {.seed = 1, .round = 0, .questions = 40})
                  .empty());
}

TEST(Merging, AsksAboutLargeComponentsThatAreNear) {
  const std::vector<int64_t> labels = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
  graph::GraphStore store(12);
  for (int64_t s : {1, 2}) store.insert(0, s, graph::Relation::same);
  for (int64_t s : {4, 5}) store.insert(3, s, graph::Relation::same);
  const std::vector<Query> queries =
      sampler_of({"oracle.sampler=merging"})
          ->choose(store, whole_pool(labels, 0.05), {.seed = 1, .round = 0, .questions = 1});
  ASSERT_EQ(queries.size(), 1u);
  EXPECT_EQ(std::minmax(store.component(queries[0].template_sample), store.component(queries[0].members[0])),
            std::minmax(store.component(0), store.component(3)));
}

TEST(Merging, PrefersNearComponentsToLargeOnes) {
  const std::vector<int64_t> labels = {0, 0, 0, 1, 1, 1, 0, 1, 2, 3};
  graph::GraphStore store(10);
  for (int64_t s : {1, 2}) store.insert(0, s, graph::Relation::same);
  for (int64_t s : {4, 5}) store.insert(3, s, graph::Relation::same);
  const std::vector<Query> queries =
      sampler_of({"oracle.sampler=merging"})
          ->choose(store, whole_pool(labels, 0.05), {.seed = 1, .round = 0, .questions = 1});
  ASSERT_EQ(queries.size(), 1u);
  EXPECT_EQ(labels[queries[0].template_sample], labels[queries[0].members[0]])
      << "not the two large ones, which are far apart";
}

TEST(Coarse, AsksGroupsFirstAndUsesTheAnswers) {
  const std::vector<int64_t> labels = corner_labels(400, 4);
  const Pool pool = whole_pool(labels, 0.3);
  const auto labeler = make_labeler(spec_of().oracle, LabelerContext{labels, kTree});
  graph::GraphStore store(400);
  store.set_labels(draw_template_labels(labels, 1));
  const auto sampler = sampler_of({"oracle.sampler=coarse", "oracle.coarse_accuracy=0.9"});
  std::vector<Decision> coarse;
  std::map<QueryKind, int64_t> kinds;
  int64_t last_coarse = -1;
  for (int64_t r = 0; r < 30; ++r) {
    const std::vector<Query> queries =
        sampler->choose(store, pool, {.seed = 1, .round = r, .questions = 20, .pending = {}, .coarse = coarse});
    if (r == 0) {
      EXPECT_EQ(queries[0].kind, QueryKind::coarse);
    }
    for (const Query& q : queries) {
      kinds[q.kind] += static_cast<int64_t>(q.members.size());
      if (q.kind == QueryKind::coarse) {
        EXPECT_TRUE(q.node == 4 || q.node == 5);
        last_coarse = r;
      }
      for (int64_t m : q.members) {  // a fine question stays inside the group that a coarse yes named
        for (const Decision& d : coarse) {
          if (d.j == m && d.verdict == Verdict::yes) {
            EXPECT_EQ(kTree[store.label(q.template_sample)], d.node);
          }
        }
      }
      const std::vector<Decision> decisions = as_decisions(q, labeler->answer(q));
      insert_answers(store, decisions);
      if (q.kind == QueryKind::coarse) coarse.insert(coarse.end(), decisions.begin(), decisions.end());
    }
  }
  EXPECT_GT(kinds[QueryKind::captcha], 100);
  EXPECT_LT(last_coarse, 25) << "the groups are reliable by then";
  const OracleSpec coarse_only = spec_of({"oracle.sampler=coarse"}).oracle;
  EXPECT_THROW(make_query_sampler(coarse_only, {1, 0}), Error) << "a circle";
  EXPECT_THROW(make_query_sampler(coarse_only, {}), Error);
}

TEST(Mix, SharesTheQuestionsAndFollowsItsSchedule) {
  const std::vector<int64_t> labels = corner_labels(300, 4);
  const Pool pool = whole_pool(labels, 0.3);
  graph::GraphStore store(300);
  store.set_labels(draw_template_labels(labels, 1));
  const auto sampler = sampler_of(
      {"oracle.sampler=mix", "oracle.mix=[{sampler: captcha, share: 0.7}, {sampler: nnclr, share: 0.3, from: 2}]"});
  const auto by_name = [&] {
    std::map<std::string, int64_t> count;
    std::set<int64_t> members;
    for (const Query& q : sampler->choose(store, pool, {.seed = 1, .round = 0, .questions = 50})) {
      count[q.sampler] += static_cast<int64_t>(q.members.size());
      for (int64_t m : q.members) EXPECT_TRUE(members.insert(m).second) << "asked by two";
    }
    return count;
  };
  EXPECT_EQ(by_name(), (std::map<std::string, int64_t>{{"captcha", 50}}));
  store.insert(10, 11, labels[10] == labels[11] ? graph::Relation::same : graph::Relation::different);
  store.insert(12, 13, labels[12] == labels[13] ? graph::Relation::same : graph::Relation::different);
  EXPECT_EQ(by_name(), (std::map<std::string, int64_t>{{"captcha", 35}, {"nnclr", 15}}));
  EXPECT_THROW(sampler_of({"oracle.sampler=mix"}), Error);
  EXPECT_THROW(sampler_of({"oracle.mix=[{sampler: captcha}]"}), Error) << "oracle.sampler is none";
  EXPECT_THROW(sampler_of({"oracle.sampler=mix", "oracle.mix=[{sampler: captcha, from: 5}]"}), Error)
      << "there is never a fifth answer";
  EXPECT_THROW(
      sampler_of({"oracle.sampler=mix", "oracle.mix=[{sampler: captcha, until: 5}, {sampler: nnclr, from: 6}]"}),
      Error);
  EXPECT_NO_THROW(
      sampler_of({"oracle.sampler=mix", "oracle.mix=[{sampler: captcha, until: 5}, {sampler: nnclr, from: 5}]"}));
  const auto templates = [](const std::string& mix) {
    return uses_templates(spec_of({"oracle.sampler=mix", "oracle.mix=" + mix}).oracle);
  };
  EXPECT_TRUE(templates("[{sampler: nnclr}, {sampler: captcha}]"));
  EXPECT_FALSE(templates("[{sampler: nnclr}, {sampler: supervised}]")) << "a label that no sampler needs is not used";
  EXPECT_THROW(sampler_of({"oracle.sampler=mix", "oracle.mix=[{sampler: riddle}]"}), Error);
  EXPECT_THROW(sampler_of({"oracle.sampler=mix", "oracle.mix=[{sampler: captcha, share: 0}]"}), Error);
  EXPECT_THROW(sampler_of({"oracle.sampler=mix", "oracle.mix=[{sampler: captcha, weight: 1}]"}), Error);
}

TEST(Captcha, UsesPriorsCentersAndOutliers) {
  const std::vector<int64_t> labels = corner_labels(300, 3);
  Pool pool = whole_pool(labels, 0.2);
  graph::GraphStore store(300);
  std::vector<int64_t> known(300, -1);
  for (int64_t s = 0; s < 60; ++s) known[s] = labels[s];
  store.set_labels(known);
  // Three times as many of class 0 are expected: it is the least known for its share.
  const auto captcha = [](const std::string& setting) {
    return sampler_of({"oracle.sampler=captcha", "oracle.members=5", "oracle.class_guess=embeddings", setting});
  };
  std::map<int64_t, int64_t> grids;
  for (const Query& q :
       captcha("oracle.priors=[0.6,0.2,0.2]")->choose(store, pool, {.seed = 1, .round = 0, .questions = 60}))
    ++grids[labels[q.template_sample]];
  EXPECT_GT(grids[0], grids[1] + grids[2]);
  EXPECT_THROW(captcha("oracle.priors=[0.5,0]"), Error);
  // The template is the member nearest to the mean of its class.
  for (const std::string center : {"embeddings", "input"}) {
    for (const Query& q :
         captcha("oracle.center=" + center)->choose(store, pool, {.seed = 1, .round = 0, .questions = 15})) {
      const at::Tensor z = pool.embeddings / pool.embeddings.norm(2, 1, true);
      at::Tensor sum = at::zeros({8}, at::kFloat);
      const at::Tensor rows = center == "input" ? pool.embeddings : z;
      for (int64_t s = 0; s < 60; ++s) {
        if (labels[s] == labels[q.template_sample]) sum += rows[s];
      }
      const float own = z[q.template_sample].dot(sum).item<float>();
      for (int64_t s = 0; s < 60; ++s) {
        if (labels[s] == labels[q.template_sample]) {
          EXPECT_LE(z[s].dot(sum).item<float>(), own + 1e-4f);
        }
      }
    }
  }
  pool.inputs = at::Tensor();
  EXPECT_THROW(captcha("oracle.center=input")->choose(store, pool, {.seed = 1, .round = 0, .questions = 5}), Error);
  // Nearly all samples predicted to be similar are similar.
  int64_t right = 0, total = 0;
  for (const Query& q :
       sampler_of({"oracle.sampler=outliers"})->choose(store, pool, {.seed = 1, .round = 0, .questions = 90})) {
    EXPECT_EQ(q.kind, QueryKind::outliers);
    EXPECT_LE(q.members.size(), 15u);
    for (int64_t m : q.members) right += labels[m] == labels[q.template_sample], ++total;
  }
  EXPECT_GE(total, 60);
  EXPECT_GE(right, total * 95 / 100);
}

// After a no, the point is asked about until its class is known: else only easy samples become known.
TEST(Samplers, AskRefusedPointsUntilTheirClassIsKnown) {
  const std::vector<int64_t> labels = corner_labels(3000, 4);
  for (const char* name : {"captcha", "uncertainty", "typical", "k_center", "pruning", "gradients", "coarse"}) {
    const auto sampler = sampler_of({std::string("oracle.sampler=") + name, "oracle.coarse_accuracy=0"});
    const auto labeler = make_labeler(spec_of().oracle, LabelerContext{labels, kTree});
    graph::GraphStore store(3000);
    store.set_labels(draw_template_labels(labels, 1));
    std::vector<int64_t> refused_before;
    int64_t asked = 0, refused = 0;
    for (int64_t r = 0; r < 12; ++r) {
      Pool pool{draw_pool(store, 300, 7, r, {}, sampler->refused_order()), {}};
      pool.embeddings = corner_rows(pool.samples, labels, 0.8);  // the classes overlap: many questions are refused
      std::set<int64_t> members;
      for (const Query& q : sampler->choose(store, pool, {.seed = 7, .round = r, .questions = 40})) {
        members.insert(q.members.begin(), q.members.end());
        insert_answers(store, as_decisions(q, labeler->answer(q)));
      }
      for (int64_t s : refused_before) asked += members.count(s);
      refused += static_cast<int64_t>(refused_before.size());
      refused_before.clear();
      for (int64_t s = 0; s < 3000; ++s) {
        if (is_refused(store, s)) refused_before.push_back(s);
      }
      ASSERT_LE(refused_before.size(), 40u) << name;
    }
    EXPECT_GT(asked, 50) << name;
    EXPECT_GE(asked, name == std::string("captcha") ? refused * 8 / 10 : refused)
        << name << ": captcha keeps the classes balanced and may leave some for later";
  }
}

TEST(Captcha, KeepsClassesBalancedAtAnyTime) {
  const std::vector<int64_t> labels = corner_labels(600, 6);
  graph::GraphStore store(600);
  store.set_labels(draw_template_labels(labels, 1));
  const std::vector<Query> queries =
      sampler_of({"oracle.sampler=captcha", "oracle.members=5"})
          ->choose(store, whole_pool(labels, 0.2), {.seed = 1, .round = 0, .questions = 150});
  std::map<int64_t, int64_t> count;
  for (size_t k = 0; k < queries.size(); ++k) {
    count[labels[queries[k].template_sample]] += static_cast<int64_t>(queries[k].members.size());
    int64_t least = 1000, most = 0;
    for (int64_t c = 0; c < 6; ++c) least = std::min(least, count[c]), most = std::max(most, count[c]);
    EXPECT_LE(most - least, 5) << "after " << k + 1 << " grids";
  }
}

}  // namespace
}  // namespace pal::oracle
