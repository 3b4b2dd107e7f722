// query_round: the message survives its coding, and every rank holds the same graph, also after a restart.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/config/config.h"
#include "dist/query_round.h"
#include "tests/dist/mpi_world.h"

namespace pal {
namespace {

TEST(RoundMessage, SurvivesItsCoding) {
  RoundMessage m;
  m.queries = {{7, QueryKind::captcha, 3, {4, 5, 1'000'000'000'000}}, {8, QueryKind::pair, 1, {2}}};
  m.answers = {{7, 3, 4, QueryKind::pair, kNoNode, Verdict::yes, 100, 0.5}, {7, 3, 5, QueryKind::pair, kNoNode, Verdict::no, 100, 1.25}, {8, 1, 2, QueryKind::pair, kNoNode, Verdict::unsure, 101, 0}};
  const RoundMessage d = decode_round(encode_round(m, 4));
  ASSERT_EQ(d.queries.size(), 2u);
  EXPECT_EQ(d.queries[0].members, m.queries[0].members);
  EXPECT_EQ(d.queries[1].template_sample, 1);
  EXPECT_EQ(d.queries[1].kind, QueryKind::pair);
  ASSERT_EQ(d.answers.size(), 3u);
  EXPECT_EQ(d.answers[1].relation(), Relation::different);
  EXPECT_EQ(d.answers[1].cost, 1.25);
  EXPECT_EQ(d.answers[2].effective_step, 101);
}

class Rounds : public testing::Test {
 protected:
  Rounds() {
    for (int64_t s = 0; s < kN; ++s) {
      labels.push_back(s % 3);
      all.push_back(s);
    }
    if (world.rank() == 0) std::filesystem::remove(path);
    world.control().barrier();
  }
  ~Rounds() override {
    world.control().barrier();
    if (world.rank() == 0) std::filesystem::remove(path);
  }
  // Runs boundaries [from, to) on a store that knows one template of each class.
  uint64_t run(GraphStore& store, int64_t from, int64_t to, int64_t* questions = nullptr) {
    std::vector<int64_t> templates(kN, -1);
    for (int64_t c = 0; c < 3; ++c) templates[c] = c;
    store.set_labels(templates);
    QueryRounds rounds(config, world.control(), store, AskedOf{all, labels}, LedgerOf{path, "run"}, from);
    for (int64_t s = from; s < to; ++s) {
      rounds.at_boundary(s, [](const std::vector<int64_t>&) -> at::Tensor { throw std::runtime_error("not needed"); });
      versions.push_back(store.version());
    }
    if (questions != nullptr) *questions = rounds.questions();
    return store.fingerprint();
  }

  static constexpr int64_t kN = 60;
  World& world = test_world();
  const Config config = Config::defaults({"train.steps=1", "optim.lr=1", "graph.kind=mixed", "oracle.sampler=captcha", "oracle.every=5",
                                          "oracle.questions_per_round=12", "oracle.pool=60", "oracle.guide=none"});
  const std::string path = "query_round_test.W" + std::to_string(test_world().size()) + ".sqlite";
  std::vector<int64_t> labels, all;
  std::vector<uint64_t> versions;
};

TEST_F(Rounds, AnswersTakeEffectExactlyOneRoundLater) {
  GraphStore store(kN);
  int64_t questions = 0;
  run(store, 0, 21, &questions);
  for (int64_t s = 0; s < 10; ++s) EXPECT_EQ(versions[s], versions[0]) << "nothing is in effect before step 10, but at " << s;
  EXPECT_GT(versions[10], versions[9]);
  EXPECT_EQ(versions[14], versions[10]);
  EXPECT_GT(versions[15], versions[14]);
  EXPECT_EQ(questions, 36);   // rounds at 5, 10, 15; that of 20 is under way
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (store.relation(i, j) != Relation::unknown) {
        EXPECT_EQ(store.relation(i, j) == Relation::same, labels[i] == labels[j]);
      }
    }
  }
}

TEST_F(Rounds, RestartedRunUsesTheSameAnswersAtTheSameSteps) {
  GraphStore calm(kN);
  const uint64_t expected = run(calm, 0, 31);
  const std::vector<uint64_t> calm_versions = versions;
  if (world.rank() == 0) std::filesystem::remove(path);
  world.control().barrier();
  versions.clear();
  {
    GraphStore first(kN);
    run(first, 0, 18);
  }
  versions.resize(12);   // the restart goes on from a checkpoint at step 12, older than the ledger
  GraphStore second(kN);
  EXPECT_EQ(run(second, 12, 31), expected);
  EXPECT_EQ(versions, calm_versions);
}

}  // namespace
}  // namespace pal
