// choose_questions: a round without a question says why, and nothing that was settled is asked again.
#include "core/oracle/round/choose_questions.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "core/config/config.h"
#include "core/oracle/samplers/samplers.h"
#include "core/oracle/stop_rules.h"

namespace pal::oracle {
namespace {

constexpr int64_t kSamples = 8;

struct AskedSamples {
  AskedSamples()
      : pool{{}, {}},
        sampler(make_query_sampler(config::Config::defaults(
            {"train.steps=1", "optim.lr=1", "oracle.sampler=captcha", "oracle.class_guess=none"}))) {
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

TEST(Asking, SaysWhyThereIsNoQuestion) {
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
  // Nobody could tell, of either class.
  asked.round.pending.clear();
  for (int64_t s = 2; s < kSamples; ++s) {
    for (int64_t t : {0, 1}) asked.round.closed.emplace_back(s, t);
  }
  EXPECT_EQ(asked.choose().why, NoQuestion::closed);
  EXPECT_TRUE(asked.choose().queries.empty());
  // All is known: that the sampler finds nothing is all it can say; the stop rules say more.
  asked.round.closed.clear();
  for (int64_t s = 2; s < kSamples; ++s) asked.store.insert(s, s % 2, graph::Relation::same);
  EXPECT_EQ(asked.choose().why, NoQuestion::pool);
  EXPECT_TRUE(closure_reached(asked.store, {}));
  asked.pool.samples.clear();
  EXPECT_EQ(asked.choose().why, NoQuestion::empty);
  const auto ssl = make_query_sampler(config::Config::defaults({"train.steps=1", "optim.lr=1", "oracle.sampler=ssl"}));
  const AskedSamples others;
  EXPECT_EQ(choose_questions(*ssl, others.store, others.pool, others.round).why, NoQuestion::silent);
}

TEST(Asking, LeavesSettledPairsAndAsksTheOthers) {
  AskedSamples asked;
  for (int64_t s = 2; s < kSamples; ++s) {
    if (s != 5) asked.round.closed.emplace_back(0, s), asked.round.closed.emplace_back(s, 1);
  }
  const Chosen chosen = asked.choose();
  ASSERT_EQ(question_count(chosen.queries), 1);
  EXPECT_EQ(chosen.queries[0].members, std::vector<int64_t>{5});
}

}  // namespace
}  // namespace pal::oracle
