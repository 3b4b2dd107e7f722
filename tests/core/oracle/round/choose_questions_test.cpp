// round, choose_questions: the steps of a query round; a round without a question has a reason, and closed pairs are
// not asked again.
#include "core/oracle/round/choose_questions.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "core/config/config.h"
#include "core/oracle/labeler.h"
#include "core/oracle/round/pool.h"
#include "core/oracle/round/round.h"
#include "core/oracle/samplers/samplers.h"
#include "core/oracle/stop_rules.h"
#include "tests/core/spec_of.h"

namespace pal::oracle {
namespace {

constexpr int64_t kSamples = 8;

struct AskedSamples {
  AskedSamples()
      : pool{{}, {}},
        sampler(make_query_sampler(
            spec_of({"train.steps=1", "optim.lr=1", "oracle.sampler=captcha", "oracle.class_guess=none"}).oracle)) {
    std::vector<int64_t> labels(kSamples, -1);
    labels[0] = 0;
    labels[1] = 1;
    store.set_labels(labels);
    pool.samples.resize(kSamples);
    std::iota(pool.samples.begin(), pool.samples.end(), int64_t{0});
  }
  Chosen choose() const { return choose_questions(*sampler, store, pool, round); }

  graph::GraphStore store{kSamples};
  Pool pool;
  std::unique_ptr<QuerySampler> sampler;
  Round round{1, 1, 100};
};

TEST(ChooseQuestions, GivesTheReasonWhenThereIsNoQuestion) {
  AskedSamples asked;
  const Chosen first = asked.choose();
  EXPECT_EQ(question_count(first.queries), kSamples - 2);
  EXPECT_EQ(first.why, NoQuestion::none);
  EXPECT_EQ(to_sentence(first.why, *asked.sampler, 0, kSamples), "");
  // All of them are pending.
  asked.round.pending = first.queries;
  EXPECT_EQ(asked.choose().why, NoQuestion::waiting);
  EXPECT_TRUE(asked.choose().queries.empty());
  EXPECT_NE(to_sentence(NoQuestion::waiting, *asked.sampler, 6, kSamples).find("6 are unanswered"), std::string::npos);
  // All were answered "unsure", for both classes.
  asked.round.pending.clear();
  for (int64_t s = 2; s < kSamples; ++s) {
    for (int64_t t : {0, 1}) asked.round.closed.emplace_back(s, t);
  }
  EXPECT_EQ(asked.choose().why, NoQuestion::closed);
  EXPECT_TRUE(asked.choose().queries.empty());
  // All is known: the reason is that the sampler finds no question; the stop rules give the precise one.
  asked.round.closed.clear();
  for (int64_t s = 2; s < kSamples; ++s) asked.store.insert(s, s % 2, graph::Relation::same);
  EXPECT_EQ(asked.choose().why, NoQuestion::pool);
  EXPECT_TRUE(closure_reached(asked.store, {}));
  asked.pool.samples.clear();
  EXPECT_EQ(asked.choose().why, NoQuestion::empty);
  const auto ssl = make_query_sampler(spec_of({"train.steps=1", "optim.lr=1", "oracle.sampler=ssl"}).oracle);
  const AskedSamples others;
  EXPECT_EQ(choose_questions(*ssl, others.store, others.pool, others.round).why, NoQuestion::silent);
}

TEST(ChooseQuestions, LeavesOutClosedPairsAndAsksTheOthers) {
  AskedSamples asked;
  for (int64_t s = 2; s < kSamples; ++s) {
    if (s != 5) asked.round.closed.emplace_back(0, s), asked.round.closed.emplace_back(s, 1);
  }
  const Chosen chosen = asked.choose();
  ASSERT_EQ(question_count(chosen.queries), 1);
  EXPECT_EQ(chosen.queries[0].members, std::vector<int64_t>{5});
}

TEST(QueryRound, AsksNoMoreThanTheBudgetAllows) {
  const StopLimits none, budget{.questions = 10};
  EXPECT_EQ(questions_left(none, 7, 1000), 7);
  EXPECT_EQ(questions_left(none, -2, 0), 0) << "more are unanswered than a round may ask";
  EXPECT_EQ(questions_left(budget, 7, 1), 7);
  EXPECT_EQ(questions_left(budget, 7, 8), 2);
  EXPECT_EQ(questions_left(budget, 7, 12), 0);
}

TEST(QueryRound, ClosesPairsThatTheGraphDoesNotHold) {
  Round round;
  add_decision(round, {.query = 1, .i = 0, .j = 2, .verdict = Verdict::yes}, InGraph::yes);
  add_decision(round, {.query = 1, .i = 0, .j = 3, .verdict = Verdict::unsure}, InGraph::no);
  add_decision(round, {.query = 1, .i = 0, .j = 4, .verdict = Verdict::skip}, InGraph::no);  // open again
  add_decision(round, {.query = 1, .i = 0, .j = 5, .verdict = Verdict::no}, InGraph::no);    // a contradiction
  add_decision(round, {.query = 2, .i = 0, .j = 6, .kind = QueryKind::coarse, .verdict = Verdict::yes}, InGraph::no);
  EXPECT_EQ(round.closed, (std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {0, 5}}));
  ASSERT_EQ(round.coarse.size(), 1u);
  EXPECT_EQ(round.coarse[0].j, 6);
}

TEST(QueryRound, MakesOnlyTheRowsThatTheSamplerNeeds) {
  const AskedSamples asked;
  int64_t embedded = 0;
  const auto embed = [&](const std::vector<int64_t>& samples, eval::SampleSlice slice) {
    embedded = slice.last - slice.first;
    return at::ones({static_cast<int64_t>(samples.size()), 2}, at::kFloat);
  };
  Pool pool = make_pool(asked.store, *asked.sampler, asked.round, {6, {}, embed});
  EXPECT_EQ(pool.samples, draw_pool(asked.store, 6, 1, 1));
  EXPECT_FALSE(pool.embeddings.defined());
  EXPECT_EQ(embedded, 0);
  const auto guided = make_query_sampler(spec_of({"oracle.sampler=uncertainty"}).oracle);
  pool = make_pool(asked.store, *guided, asked.round, {6, {2, 3, 4}, embed});
  EXPECT_EQ(pool.samples, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(pool.embeddings.size(0), 3);
  EXPECT_EQ(embedded, 3);
}

// Without a ledger: three annotators, the last of whom always errs, and the majority of them.
TEST(QueryRound, AsksAnnotatorsAndDecidesByTheMajority) {
  const auto labeler = make_simulated_labeler({0, 0, 1}, {.cost = 2, .annotators = 3, .annotator_noise = {0, 0, 1}});
  const Query query{.id = 3, .template_sample = 0, .members = {1, 2}};
  const std::vector<Question> questions = ask_annotators(*labeler, query, 3);
  ASSERT_EQ(questions.size(), 2u);
  EXPECT_EQ(questions[1].answers.size(), 3u);
  EXPECT_EQ(questions[1].cost, 6);
  const std::vector<Decision> decisions = decide(questions, ConsensusKind::majority, {}, 0);
  EXPECT_EQ(decisions[0].verdict, Verdict::yes);
  EXPECT_EQ(decisions[1].verdict, Verdict::no);
  EXPECT_EQ(decide(ask_annotators(*labeler, query, 4), ConsensusKind::majority, {}, 0)[1].cost, 6)
      << "there are three annotators";
  EXPECT_EQ(decide(ask_annotators(*labeler, {.id = 2, .template_sample = 0, .members = {1}}, 2),
                   ConsensusKind::majority, {}, 0)[0]
                .verdict,
            Verdict::unsure)
      << "a tie of the third and the first";
}

}  // namespace
}  // namespace pal::oracle
