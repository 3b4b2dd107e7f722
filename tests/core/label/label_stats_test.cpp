// label_stats: figures of the answers so far: answered and inferred pairs, contradictions, the consensus.
#include "core/label/label_stats.h"

#include <gtest/gtest.h>

#include <tuple>

#include "core/label/answer_service.h"
#include "core/oracle/relation_count.h"
#include "tests/test_folder.h"

namespace pal::label {
namespace {

std::string card_uuid(char c) { return std::string(32, c); }

TEST(LabelStats, CountsInferredPairsAndFindsTheChain) {
  const TestFolder folder;
  oracle::Ledger ledger(folder / "ledger.sqlite", "run");
  std::vector<oracle::Query> queries = {{0, oracle::QueryKind::captcha, 0, {1, 2, 3}},
                                        {0, oracle::QueryKind::pair, 3, {4}},
                                        {0, oracle::QueryKind::pair, 1, {2}},
                                        {0, oracle::QueryKind::pair, 5, {6}}};
  ledger.record_queries(queries, {"captcha", 1, 0});
  AnswerService service(ledger, folder.path().string(), {});
  const auto say = [&](const std::string& who, int64_t query, const std::string& uuid,
                       std::vector<std::pair<int64_t, oracle::Verdict>> verdicts) {
    EXPECT_EQ(service.record({who, uuid, query, std::move(verdicts), 6}), "");
  };
  say("ann", 1, card_uuid('1'), {{1, oracle::Verdict::yes}, {2, oracle::Verdict::yes}, {3, oracle::Verdict::no}});
  say("ann", 2, card_uuid('2'), {{4, oracle::Verdict::yes}});
  say("ann", 3, card_uuid('3'), {{2, oracle::Verdict::no}});  // against 0 = 1, 0 = 2
  say("ann", 4, card_uuid('4'), {{6, oracle::Verdict::unsure}});
  const auto look = [&] { return label_stats(ledger, graph::GraphStore(10), oracle::ConsensusKind::majority, {}); };
  LabelStats s = look();
  // {0, 1, 2} and {3, 4}: 3 + 1 pairs the same, 6 different.
  EXPECT_EQ(s.known, 10);
  EXPECT_EQ(s.answered_pairs, 4);
  EXPECT_EQ(s.components, 7);
  EXPECT_EQ(s.unsure, 1);
  EXPECT_EQ(s.history.back().known, 10);
  EXPECT_NEAR(s.seconds, 24, 1e-9);
  EXPECT_EQ(s.timed, 6);
  EXPECT_EQ(s.no, 2);
  ledger.record_answers({{4, 5, 6, oracle::Verdict::no, "imported"}});
  EXPECT_EQ(look().timed, 6) << "an imported answer without a time does not change the pace";
  EXPECT_EQ(s.examples.at(s.store->component(0)), (std::vector<int64_t>{0, 1, 2}));
  ASSERT_EQ(s.disputes.size(), 1u);
  EXPECT_EQ(s.disputes[0].answer.query, 3);
  ASSERT_EQ(s.disputes[0].chain.size(), 2u);
  for (const AskedLink& l : s.disputes[0].chain) EXPECT_EQ(l.query, 1);
  // One click: the link is wrong.
  EXPECT_EQ(service.resolve("bob", card_uuid('5'), s.disputes[0].chain[0].query, s.disputes[0].chain[0].member,
                            oracle::Verdict::no),
            "");
  s = look();
  EXPECT_TRUE(s.disputes.empty());
  EXPECT_NE(service.resolve("bob", card_uuid('6'), 9, 9, oracle::Verdict::no), "");
}

// Two people who answer yes to everything outvote a careful one; Dawid and Skene's model does not let them.
TEST(LabelStats, TheConsensusDecides) {
  const TestFolder folder;
  oracle::Ledger ledger(folder / "ledger.sqlite", "run");
  std::vector<oracle::Query> queries;
  for (int64_t k = 0; k < 21; ++k) queries.push_back({0, oracle::QueryKind::pair, 2 * k, {2 * k + 1}});
  ledger.record_queries(queries, {"captcha", 1, 0, 3});
  std::vector<oracle::Answer> answers;
  for (const oracle::Query& q : queries) {
    const oracle::Verdict right = q.id % 2 == 0 ? oracle::Verdict::yes : oracle::Verdict::no;
    for (const char* who : {"ann", "bob", "cat", "dan"}) {
      if (q.id == 21 && *who == 'b') continue;  // in the last one ann contradicts the other two
      answers.push_back(
          {q.id, q.template_sample, q.members[0], *who == 'a' || *who == 'b' ? right : oracle::Verdict::yes, who});
    }
  }
  ledger.record_answers(answers);
  const auto relation = [&](oracle::ConsensusKind kind) {
    return label_stats(ledger, graph::GraphStore(50), kind, {}).store->relation(40, 41);
  };
  EXPECT_EQ(relation(oracle::ConsensusKind::majority), graph::Relation::same);
  EXPECT_EQ(relation(oracle::ConsensusKind::dawid_skene), graph::Relation::different);
}

TEST(LabelStats, KnownPairsAreThoseWhoseRelationIsKnown) {
  graph::GraphStore store(12);
  std::vector<int64_t> labels(12, -1);
  labels[0] = labels[1] = 0, labels[2] = 1, labels[3] = 2;
  store.set_labels(labels);
  const auto expect = [&] {
    int64_t known = 0;
    for (int64_t i = 0; i < 12; ++i) {
      for (int64_t j = i + 1; j < 12; ++j) known += store.relation(i, j) != graph::Relation::unknown;
    }
    EXPECT_EQ(oracle::count_relations(store).known, known);
  };
  expect();
  for (const auto& [i, j, same] : std::vector<std::tuple<int64_t, int64_t, bool>>{{4, 0, true},
                                                                                  {5, 6, false},
                                                                                  {6, 7, true},
                                                                                  {5, 7, false},
                                                                                  {5, 2, true},
                                                                                  {8, 9, false},
                                                                                  {8, 5, false},
                                                                                  {10, 9, true}}) {
    store.insert(i, j, same ? graph::Relation::same : graph::Relation::different);
    expect();
  }
}

}  // namespace
}  // namespace pal::label
