// oracle: captcha in a closed loop with the simulated labeler, pairs that it never asks, and the pool's draws.
#include "core/oracle/oracle.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/oracle/labeler.h"
#include "core/oracle/round/pool.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "tests/core/oracle/oracle_cases.h"
#include "tests/core/spec_of.h"

namespace pal::oracle {
namespace {

std::vector<int64_t> make_labels(int64_t n, int64_t classes) {
  std::vector<int64_t> labels(n);
  Random random(3, Purpose::bench);
  for (int64_t i = 0; i < n; ++i) labels[i] = static_cast<int64_t>(random.below(classes));
  return labels;
}

// Classes on the corners of a simplex, with Gaussian noise around them.
at::Tensor make_embeddings(const std::vector<int64_t>& samples, const std::vector<int64_t>& labels, double noise) {
  at::Tensor z = at::empty({static_cast<int64_t>(samples.size()), 8}, at::kFloat);
  for (size_t row = 0; row < samples.size(); ++row) {
    Random random(5, Purpose::bench, 0, static_cast<uint64_t>(samples[row]));
    for (int64_t k = 0; k < 8; ++k) {
      z.data_ptr<float>()[row * 8 + k] = static_cast<float>((labels[samples[row]] == k) + noise * random.normal());
    }
  }
  return z;
}

struct Loop {
  int64_t questions = 0;
  int64_t rounds = 0;
};

OracleSpec captcha(int64_t members, Templates templates, Guide guide) {
  OracleSpec spec;
  spec.sampler = "captcha";
  spec.members = members;
  spec.templates = templates;
  spec.class_guess = guide;
  return spec;
}

// Asks and answers until nothing is left. Every question must be open when it is asked, and be asked once.
Loop run_to_closure(graph::GraphStore& store, const OracleSpec& spec, const std::vector<int64_t>& labels,
                    int64_t pool_size, double embedding_noise) {
  const auto sampler = make_query_sampler(spec);
  const auto labeler = make_simulated_labeler(labels, {});
  std::set<std::pair<int64_t, int64_t>> asked;
  Loop loop;
  for (; loop.rounds < 20000; ++loop.rounds) {
    Pool pool{draw_pool(store, pool_size, 1, loop.rounds), {}};
    if (sampler->needs() == PoolNeeds::embeddings)
      pool.embeddings = make_embeddings(pool.samples, labels, embedding_noise);
    const std::vector<Query> queries = sampler->choose(store, pool, {1, loop.rounds, 37, {}});
    if (queries.empty() && pool_size >= store.samples()) return loop;
    if (queries.empty() && store.components() == 5) return loop;
    EXPECT_LE(question_count(queries), 37);
    std::set<int64_t> components;
    for (const Query& q : queries) {
      EXPECT_LE(static_cast<int64_t>(q.members.size()), spec.members);
      for (int64_t m : q.members) {
        EXPECT_EQ(store.relation(q.template_sample, m), graph::Relation::unknown);
        EXPECT_TRUE(asked.insert(std::minmax(q.template_sample, m)).second) << "asked twice";
        EXPECT_TRUE(components.insert(store.component(m)).second) << "one question a round about a component";
      }
    }
    for (const Query& q : queries) {
      const AnswersUsed used = insert_answers(store, as_decisions(q, labeler->answer(q)));
      EXPECT_TRUE(used.contradicted.empty());
      loop.questions += used.inserted + used.implied;
    }
  }
  ADD_FAILURE() << "no closure";
  return loop;
}

void expect_recovered(const graph::GraphStore& store, const std::vector<int64_t>& labels) {
  for (int64_t i = 0; i < store.samples(); ++i) {
    for (int64_t j = 0; j < i; ++j) {
      ASSERT_EQ(store.relation(i, j), labels[i] == labels[j] ? graph::Relation::same : graph::Relation::different)
          << i << " " << j;
    }
  }
}

TEST(Captcha, RecoversTheGraphFromTemplates) {
  const std::vector<int64_t> labels = make_labels(300, 5);
  for (int64_t pool : {300, 80}) {
    graph::GraphStore store(300);
    store.set_labels(draw_template_labels(labels, 1));
    const Loop loop = run_to_closure(store, captcha(10, Templates::given, Guide::none), labels, pool, 0);
    expect_recovered(store, labels);
    EXPECT_LE(loop.questions, 300 * 5);
  }
}

TEST(Captcha, WithEmbeddingsItNeedsAboutNQuestions) {
  const std::vector<int64_t> labels = make_labels(300, 5);
  graph::GraphStore blind(300), guided(300);
  blind.set_labels(draw_template_labels(labels, 1));
  guided.set_labels(draw_template_labels(labels, 1));
  const int64_t without = run_to_closure(blind, captcha(10, Templates::given, Guide::none), labels, 300, 0).questions;
  const int64_t with =
      run_to_closure(guided, captcha(10, Templates::given, Guide::embeddings), labels, 300, 0.2).questions;
  expect_recovered(guided, labels);
  EXPECT_LT(with, 450);
  EXPECT_GT(without, 600);
}

TEST(Captcha, DiscoversTheClasses) {
  const std::vector<int64_t> labels = make_labels(200, 5);
  for (Guide guide : {Guide::none, Guide::embeddings}) {
    graph::GraphStore store(200);
    const Loop loop = run_to_closure(store, captcha(10, Templates::discover, guide), labels, 200, 0.2);
    expect_recovered(store, labels);
    EXPECT_EQ(store.components(), 5);
    EXPECT_LE(loop.questions, 200 * 5);
  }
}

TEST(Captcha, AsksForTheLeastKnownClass) {
  graph::GraphStore store(40);
  std::vector<int64_t> labels(40, -1);
  labels[3] = labels[4] = labels[5] = 0;
  labels[6] = 1;
  labels[7] = labels[8] = 2;
  store.set_labels(labels);
  Pool pool{{}, {}};
  for (int64_t s = 0; s < 40; ++s) pool.samples.push_back(s);
  const auto sampler = make_query_sampler(captcha(2, Templates::given, Guide::none));
  const std::vector<Query> queries = sampler->choose(store, pool, {0, 0, 9, {}});
  std::vector<int64_t> templates, sizes;
  for (const Query& q : queries) {
    templates.push_back(q.template_sample);
    sizes.push_back(static_cast<int64_t>(q.members.size()));
  }
  // Known 3, 1, 2: class 1 (1 → 3), class 2 (2 → 4), then ties by id: class 0 (3 → 5), class 1 (3 → 5), class 2.
  EXPECT_EQ(templates, (std::vector<int64_t>{6, 7, 3, 6, 7}));
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 2, 2, 1}));
}

TEST(Captcha, SkipsPendingPairsAndIgnoresTheOrderOfThePool) {
  const std::vector<int64_t> labels = make_labels(120, 4);
  graph::GraphStore store(120);
  store.set_labels(draw_template_labels(labels, 2));
  for (Guide guide : {Guide::none, Guide::embeddings}) {
    const auto sampler = make_query_sampler(captcha(7, Templates::given, guide));
    Pool pool{draw_pool(store, 100, 9, 4), {}};
    pool.embeddings = make_embeddings(pool.samples, labels, 0.5);
    const std::vector<Query> first = sampler->choose(store, pool, {9, 4, 30, {}});
    ASSERT_EQ(question_count(first), 30);

    Pool shuffled;
    std::vector<int64_t> order;
    for (int64_t k = 0; k < 100; ++k) order.push_back((k * 37 + 11) % 100);
    for (int64_t k : order) shuffled.samples.push_back(pool.samples[k]);
    shuffled.embeddings = pool.embeddings.index_select(0, at::tensor(order, at::kLong));
    const std::vector<Query> again = sampler->choose(store, shuffled, {9, 4, 30, {}});
    ASSERT_EQ(again.size(), first.size());
    for (size_t q = 0; q < first.size(); ++q) {
      EXPECT_EQ(again[q].template_sample, first[q].template_sample);
      EXPECT_EQ(again[q].members, first[q].members);
    }

    std::set<int64_t> pending;
    for (const Query& q : first) pending.insert(q.members.begin(), q.members.end());
    for (const Query& q : sampler->choose(store, pool, {9, 4, 100, first})) {
      for (int64_t m : q.members) EXPECT_EQ(pending.count(m), 0u);
    }
  }
  const auto sampler = make_query_sampler(captcha(7, Templates::given, Guide::none));
  const Pool pool{draw_pool(store, 100, 9, 4), {}};
  EXPECT_NE(sampler->choose(store, pool, {9, 4, 30, {}})[0].members,
            sampler->choose(store, pool, {9, 5, 30, {}})[0].members);
}

TEST(Captcha, MissingInputsAreNamed) {
  graph::GraphStore store(10);
  const Pool pool{{0, 1, 2}, {}};
  EXPECT_THROW(make_query_sampler(captcha(10, Templates::given, Guide::none))->choose(store, pool, {0, 0, 5, {}}),
               Error);
  EXPECT_THROW(make_query_sampler(captcha(0, Templates::given, Guide::none)), Error);
  EXPECT_TRUE(make_query_sampler(captcha(10, Templates::discover, Guide::none))
                  ->choose(store, {{}, {}}, {0, 0, 5, {}})
                  .empty());
  EXPECT_TRUE(
      make_query_sampler(captcha(10, Templates::discover, Guide::none))->choose(store, pool, {0, 0, 0, {}}).empty());
}

TEST(SimulatedLabeler, FlipsTheConfiguredShare) {
  const std::vector<int64_t> labels = {0, 1, 0, -1};
  const auto exact = make_simulated_labeler(labels, {});
  const std::vector<Answer> answers = exact->answer({4, QueryKind::captcha, 0, {1, 2, 3}});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].verdict, Verdict::no);
  EXPECT_EQ(answers[1].verdict, Verdict::yes);
  EXPECT_EQ(answers[2].verdict, Verdict::unsure);
  EXPECT_EQ(answers[1].query, 4);
  EXPECT_EQ(answers[1].i, 0);
  EXPECT_EQ(answers[1].j, 2);

  const auto noisy = make_simulated_labeler(labels, {0.2, 7, 1.0}),
             same = make_simulated_labeler(labels, {0.2, 7, 1.0});
  int64_t flipped = 0;
  for (int64_t id = 1; id <= 4000; ++id) {
    const Query q{id, QueryKind::captcha, 0, {2}};
    flipped += noisy->answer(q)[0].verdict == Verdict::no;
    ASSERT_EQ(noisy->answer(q)[0].verdict, same->answer(q)[0].verdict);
  }
  EXPECT_NEAR(static_cast<double>(flipped) / 4000, 0.2, 0.025);
  EXPECT_THROW(make_simulated_labeler({}, {}), Error);
  EXPECT_THROW(make_simulated_labeler(labels, {1.5, 7, 1.0}), Error);
  EXPECT_THROW(exact->answer({1, QueryKind::pair, 0, {9}}), Error);
}

TEST(Pool, KeepsAQuarterForKnownSamples) {
  graph::GraphStore store(1000);
  std::vector<int64_t> labels(1000, -1);
  for (int64_t s = 0; s < 300; ++s) labels[s] = s % 3;
  store.set_labels(labels);
  const auto known = [&](const std::vector<int64_t>& pool) {
    EXPECT_TRUE(std::is_sorted(pool.begin(), pool.end()));
    EXPECT_EQ(std::set<int64_t>(pool.begin(), pool.end()).size(), pool.size());
    return std::count_if(pool.begin(), pool.end(), [&](int64_t s) { return store.known(s); });
  };
  const std::vector<int64_t> pool = draw_pool(store, 200, 1, 2);
  EXPECT_EQ(pool.size(), 200u);
  EXPECT_EQ(known(pool), 50);
  EXPECT_EQ(pool, draw_pool(store, 200, 1, 2));
  EXPECT_NE(pool, draw_pool(store, 200, 1, 3));
  EXPECT_NE(pool, draw_pool(store, 200, 2, 2));
  EXPECT_EQ(known(draw_pool(store, 950, 1, 2)), 250);
  EXPECT_EQ(draw_pool(store, 5000, 1, 2).size(), 1000u);
  std::vector<int64_t> from;
  for (int64_t s = 250; s < 350; ++s) from.push_back(s);
  const std::vector<int64_t> part = draw_pool(store, 60, 1, 2, from);
  EXPECT_EQ(known(part), 15);
  EXPECT_TRUE(part.front() >= 250 && part.back() < 350);
}

TEST(Pool, ContainsRefusedSamplesAgain) {
  for (graph::Deduction deduction : {graph::Deduction::on, graph::Deduction::off}) {
    graph::GraphStore store(1000, deduction);
    std::vector<int64_t> labels(1000, -1);
    labels[0] = 0, labels[1] = 1;
    store.set_labels(labels);
    for (int64_t s = 100; s < 140; ++s) store.insert(0, s, graph::Relation::different);
    store.insert(1, 139, graph::Relation::same);
    EXPECT_TRUE(is_refused(store, 100));
    EXPECT_FALSE(is_refused(store, 0) || is_refused(store, 139) || is_refused(store, 500));
    const auto refused = [&](const std::vector<int64_t>& pool) {
      return std::count_if(pool.begin(), pool.end(), [](int64_t s) { return s >= 100 && s < 139; });
    };
    const std::vector<int64_t> first = draw_pool(store, 100, 1, 2, {}, RefusedOrder::first);
    EXPECT_EQ(first.size(), 100u);
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()) &&
                std::adjacent_find(first.begin(), first.end()) == first.end());
    EXPECT_EQ(refused(first), 39);
    EXPECT_EQ(refused(draw_pool(store, 40, 1, 2, {}, RefusedOrder::first)), 20)
        << "at most half, where others are left";
    EXPECT_LT(refused(draw_pool(store, 100, 1, 2)), 15);
    EXPECT_EQ(draw_pool(store, 5000, 1, 2, {}, RefusedOrder::first).size(), 1000u);
  }
}

TEST(Pool, TemplatesAreOneOfEachClass) {
  const std::vector<int64_t> labels = make_labels(200, 6);
  const std::vector<int64_t> known = draw_template_labels(labels, 1);
  std::map<int64_t, int> count;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (known[i] < 0) continue;
    EXPECT_EQ(known[i], labels[i]);
    ++count[known[i]];
  }
  EXPECT_EQ(count.size(), 6u);
  for (const auto& [label, times] : count) EXPECT_EQ(times, 1);
  EXPECT_NE(known, draw_template_labels(labels, 2));
}

TEST(Answers, AreCountedByTheirEffect) {
  graph::GraphStore store(5);
  const AnswersUsed used = insert_answers(store, {{1, 0, 1, QueryKind::pair, kNoNode, Verdict::yes, 0, 1},
                                                  {1, 1, 2, QueryKind::pair, kNoNode, Verdict::no, 0, 1},
                                                  {1, 0, 2, QueryKind::pair, kNoNode, Verdict::no, 0, 1},
                                                  {1, 0, 2, QueryKind::pair, kNoNode, Verdict::yes, 0, 1},
                                                  {1, 3, 4, QueryKind::pair, kNoNode, Verdict::unsure, 0, 1}});
  EXPECT_EQ(used.inserted, 2);
  EXPECT_EQ(used.implied, 1);
  EXPECT_EQ(used.unsure, 1);
  ASSERT_EQ(used.contradicted.size(), 1u);
  EXPECT_EQ(used.contradicted[0].answer.relation(), graph::Relation::same);
  EXPECT_EQ(to_string(used.contradicted[0].chain), "0 = 1 (answer 0), 1 ≠ 2 (answer 1)");
  EXPECT_NE(to_sentence(used.contradicted)
                .find("1 answers contradict earlier ones and are left out; by the first, 0 and 2 are the "
                      "same, but 0 = 1 (answer 0), 1 ≠ 2 (answer 1)"),
            std::string::npos);
  EXPECT_EQ(to_sentence({}), "");
  EXPECT_THROW(insert_answers(store, {{.query = 1, .i = 0, .j = 5, .verdict = Verdict::yes}}), Error);
}

TEST(OracleFactory, ReadsTheConfig) {
  EXPECT_EQ(make_query_sampler(spec_of().oracle), nullptr);
  const auto captcha = make_query_sampler(spec_of({"oracle.sampler=captcha", "oracle.class_guess=none"}).oracle);
  ASSERT_NE(captcha, nullptr);
  EXPECT_EQ(captcha->name(), "captcha");
  EXPECT_EQ(captcha->needs(), PoolNeeds::samples);
  EXPECT_EQ(captcha->refused_order(), RefusedOrder::drawn);
  EXPECT_EQ(make_query_sampler(spec_of({"oracle.sampler=captcha", "oracle.center=input"}).oracle)->needs(),
            PoolNeeds::inputs);
  const std::string mix = "oracle.mix=[{sampler: captcha, share: 0.5}, {sampler: supervised, share: 0.5}]";
  EXPECT_EQ(make_query_sampler(spec_of({"oracle.sampler=mix", mix, "oracle.center=input"}).oracle)->needs(),
            PoolNeeds::inputs);
  EXPECT_EQ(make_query_sampler(spec_of({"oracle.sampler=mix", mix}).oracle)->refused_order(), RefusedOrder::first);
  EXPECT_EQ(make_query_sampler(spec_of({"oracle.sampler=captcha"}).oracle)->needs(), PoolNeeds::embeddings);
  EXPECT_EQ(make_labeler(spec_of().oracle, LabelerContext{{0, 1}})->name(), "labels");
  for (QueryKind kind : {QueryKind::pair, QueryKind::captcha}) EXPECT_EQ(query_kind(to_string(kind)), kind);
  EXPECT_THROW(query_kind("riddle"), Error);
}

}  // namespace
}  // namespace pal::oracle
