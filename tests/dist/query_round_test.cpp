// query_round: the message survives its coding, and every rank holds the same graph, also after a restart.
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <future>
#include <thread>

#include "core/config/config.h"
#include "core/graph/alike.h"
#include "core/io/files.h"
#include "core/oracle/answer_lines.h"
#include "dist/query_round.h"
#include "kernels/base/error.h"
#include "tests/dist/mpi_world.h"

namespace pal {
namespace {

TEST(RoundMessage, SurvivesItsCoding) {
  RoundMessage m{40, 3, StopReason::cost};
  m.decisions = {{7, 3, 4, QueryKind::captcha, kNoNode, Verdict::yes, 100, 0.5, 0.75}, {7, 3, 1'000'000'000'000, QueryKind::coarse, 12, Verdict::no, 101, 1.25, 1}};
  for (int64_t expected : {1, 2, 9}) {
    const RoundMessage d = broadcast_round(test_world().rank() == 0 ? m : RoundMessage{}, expected, test_world().control());
    EXPECT_EQ(d.asked, 40);
    EXPECT_EQ(d.open, 3);
    EXPECT_EQ(d.stop, StopReason::cost);
    ASSERT_EQ(d.decisions.size(), 2u) << "also when there are more than expected";
    EXPECT_EQ(d.decisions[0].relation(), Relation::same);
    EXPECT_EQ(d.decisions[0].confidence, 0.75);
    EXPECT_EQ(d.decisions[1].j, 1'000'000'000'000);
    EXPECT_EQ(d.decisions[1].node, 12);
    EXPECT_EQ(d.decisions[1].cost, 1.25);
    EXPECT_EQ(d.decisions[1].effective_step, 101);
  }
}

class Rounds : public testing::Test {
 protected:
  Rounds() {
    for (int64_t s = 0; s < kN; ++s) {
      labels.push_back(s % 3);
      all.push_back(s);
    }
    begin_anew();
  }
  ~Rounds() override {
    world.control().barrier();
    if (world.rank() == 0) std::filesystem::remove_all(folder);
  }
  void begin_anew() {
    world.control().barrier();
    if (world.rank() == 0) {
      std::filesystem::remove_all(folder);
      std::filesystem::create_directory(folder);
    }
    world.control().barrier();
    versions.clear();
    said.clear();
  }
  std::vector<int64_t> templates() const {
    std::vector<int64_t> one_each(kN, -1);
    for (int64_t c = 0; c < 3; ++c) one_each[c] = c;
    return one_each;
  }
  // Runs boundaries [from, to) on a store that knows one template of each class.
  uint64_t run(GraphStore& store, int64_t from, int64_t to, int64_t* questions = nullptr, const std::function<void(int64_t)>& before = {}) {
    if (templates_given) store.set_labels(templates());
    QueryRounds rounds(config, world.control(), store, AskedOf{all, labels}, LedgerOf{path, "run"}, from);
    for (int64_t s = from; s < to; ++s) {
      if (before) {
        rounds.ledger_position();
        if (world.rank() == 0) before(s);
        world.control().barrier();
      }
      rounds.at_boundary(s, [](const std::vector<int64_t>&) -> at::Tensor { throw std::runtime_error("not needed"); });
      versions.push_back(store.version());
      if (!rounds.warning().empty()) said.push_back(rounds.warning());
    }
    if (questions != nullptr) *questions = rounds.questions();
    leaves = rounds.leaves();
    open = rounds.open_questions();
    contradictions = rounds.contradictions();
    cost = rounds.cost();
    return store.fingerprint();
  }

  // A run that is repeated from step `from` to `to` on the ledger that stands has the versions and the graph it had.
  void expect_the_same_from(int64_t from, int64_t to, uint64_t fingerprint) {
    const std::vector<uint64_t> before = versions;
    versions.resize(from);
    GraphStore again(kN);
    EXPECT_EQ(run(again, from, to), fingerprint);
    EXPECT_EQ(versions, before);
  }

  static constexpr int64_t kN = 60;
  World& world = test_world();
  static Config with(std::vector<std::string> more) {
    std::vector<std::string> all = {"train.steps=1", "optim.lr=1", "graph.kind=mixed", "oracle.sampler=captcha", "oracle.every=5",
                                    "oracle.questions_per_round=12", "oracle.pool=60", "oracle.guide=none"};
    all.insert(all.end(), more.begin(), more.end());
    return Config::defaults(all);
  }
  Config config = with({});
  const std::string folder = "query_round_test.W" + std::to_string(test_world().size());
  const std::string path = folder + "/ledger.sqlite";
  bool leaves = false, templates_given = true;
  int64_t open = 0, contradictions = 0;
  double cost = 0;
  std::vector<std::string> said;   // of the last runs
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
  begin_anew();
  {
    GraphStore first(kN);
    run(first, 0, 18);
  }
  versions.resize(12);   // the restart goes on from a checkpoint at step 12, older than the ledger
  GraphStore second(kN);
  EXPECT_EQ(run(second, 12, 31), expected);
  EXPECT_EQ(versions, calm_versions);
}

// A checkpoint holds what the ledger holds: rank 0 waits for a round under way, however long it takes.
TEST_F(Rounds, ACheckpointWaitsForTheRoundUnderWay) {
  std::promise<void> go_on;
  std::atomic<bool> went_on = false;
  AskedOf of{all, labels};
  of.before_round = [held = go_on.get_future().share()](int64_t) { held.wait(); };
  GraphStore store(kN);
  store.set_labels(templates());
  QueryRounds rounds(config, world.control(), store, of, LedgerOf{path, "run"}, 0);
  for (int64_t s = 0; s <= 5; ++s) rounds.at_boundary(s, {});
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    went_on = true;
    go_on.set_value();
  });
  EXPECT_EQ(rounds.ledger_position(), 0) << "its answers are not in effect yet";
  EXPECT_TRUE(went_on || world.rank() != 0) << "a run that goes on from here would never ask this round";
  later.join();
  for (int64_t s = 6; s <= 10; ++s) rounds.at_boundary(s, {});
  EXPECT_EQ(rounds.ledger_position(), 12);
}

TEST_F(Rounds, RanksWithAnotherGraphAreNoticed) {
  if (world.size() == 1) return;
  GraphStore store(kN);
  QueryRounds rounds(config, world.control(), store, AskedOf{all, labels}, LedgerOf{path, "run"}, 0);
  for (int64_t s = 0; s < 5; ++s) rounds.at_boundary(s, {});
  if (world.rank() == world.size() - 1) store.set_labels(labels);
  try {
    rounds.at_boundary(5, {});
    ADD_FAILURE() << "not seen";
  } catch (const Error& e) {   // on every rank
    EXPECT_EQ(e.code(), Exit::lost);
    EXPECT_NE(std::string(e.what()).find("rank " + std::to_string(world.size() - 1) + " of"), std::string::npos) << e.what();
  }
}

// People: answers take effect in the round after they came, at the same step again when the run is repeated from the ledger.
TEST_F(Rounds, AnswersOfPeopleTakeEffectWhenTheyAreIn) {
  config = with({"oracle.labeler=exchange"});
  GraphStore store(kN);
  int64_t questions = 0;
  const auto people = [&](int64_t s) {
    if (s != 13) return;
    std::ofstream out(folder + "/answers.jsonl");
    for (const std::string& line : split_lines(read_whole_file(folder + "/questions.jsonl"))) {
      const Query q = parse_question(line, "questions");
      for (int64_t m : q.members) out << answer_line({q.id, q.template_sample, m, labels[m] == labels[q.template_sample] ? Verdict::yes : Verdict::no, "ann"});
    }
  };
  run(store, 0, 26, &questions, people);
  for (int64_t s = 0; s < 20; ++s) EXPECT_EQ(versions[s], versions[0]) << "handed in before 13, found by the round of 15, in effect at 20, but at " << s;
  EXPECT_GT(versions[20], versions[19]);
  EXPECT_EQ(questions, 12);
  EXPECT_EQ(open, 12) << "the next ones are out";
  EXPECT_FALSE(leaves);
  expect_the_same_from(7, 26, store.fingerprint());
}

TEST_F(Rounds, ARunMayLeaveWhilePeopleAnswer) {
  config = with({"oracle.labeler=exchange", "oracle.wait=exit"});
  {
    GraphStore store(kN);
    run(store, 0, 11);
    EXPECT_TRUE(leaves);
    EXPECT_EQ(open, 12);
  }
  {
    GraphStore store(kN);
    run(store, 11, 11);
    EXPECT_TRUE(leaves) << "nothing came: not even a step is worth it";
  }
  if (world.rank() == 0) {
    const std::vector<std::string> lines = split_lines(read_whole_file(folder + "/questions.jsonl"));
    const Query q = parse_question(lines[0], "questions");
    Inbox(folder).submit("one", answer_line({q.id, q.template_sample, q.members[0], Verdict::unsure, "ann"}));
  }
  world.control().barrier();
  GraphStore store(kN);
  run(store, 11, 11);
  EXPECT_FALSE(leaves);
  EXPECT_EQ(open, 11);
}

// An answer taken back leaves the graph, at a step of its own; the question is open then and is not asked anew.
TEST_F(Rounds, AnUndoneAnswerLeavesTheGraph) {
  at::Tensor pair = at::zeros({2}, at::kLong);
  std::string uuid;
  {
    GraphStore store(kN);
    run(store, 0, 13);
    if (world.rank() == 0) {
      Ledger ledger(path, "run");
      for (const RecordedAnswer& r : ledger.all_answers()) {
        if (r.answer.verdict != Verdict::yes || !uuid.empty()) continue;
        uuid = r.answer.uuid;
        pair = at::tensor(std::vector<int64_t>{r.answer.i, r.answer.j});
      }
    }
    world.control().broadcast(pair, 0);
    EXPECT_EQ(store.relation(pair.data_ptr<int64_t>()[0], pair.data_ptr<int64_t>()[1]), Relation::same);
  }
  const int64_t i = pair.data_ptr<int64_t>()[0], j = pair.data_ptr<int64_t>()[1];
  begin_anew();
  GraphStore store(kN);
  std::vector<Relation> seen;
  run(store, 0, 41, nullptr, [&](int64_t s) {
    seen.push_back(store.relation(i, j));
    if (s == 12) Inbox(folder).submit("undo", undo_line(uuid, "ann"));
  });
  EXPECT_EQ(store.relation(i, j), Relation::unknown);
  if (world.rank() == 0) {
    EXPECT_EQ(seen[20], Relation::same) << "handed in at 12, found by the round of 15, in effect at 20";
    EXPECT_EQ(seen[21], Relation::unknown);
  }
  EXPECT_EQ(open, 1);
  expect_the_same_from(17, 41, store.fingerprint());
}

// A tenth of the answers is wrong. With three votes and repeats where answers contradict, fewer relations are wrong than with
// one answer each, and a restart gives the same graph.
TEST_F(Rounds, VotesAndRepeatsMendWrongAnswers) {
  const auto wrong_share = [&](const GraphStore& store) {
    int64_t wrong = 0, all = 0;
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        if (store.relation(i, j) == Relation::unknown) continue;
        ++all;
        wrong += (store.relation(i, j) == Relation::same) != (labels[i] == labels[j]);
      }
    }
    return static_cast<double>(wrong) / static_cast<double>(std::max<int64_t>(all, 1));
  };
  config = with({"oracle.noise=0.1"});
  GraphStore naive(kN);
  run(naive, 0, 71);
  const double without = wrong_share(naive);
  begin_anew();
  config = with({"oracle.noise=0.1", "oracle.votes=3", "oracle.repeats=4", "oracle.annotators=9", "oracle.consensus=dawid-skene"});
  GraphStore mended(kN);
  const uint64_t expected = run(mended, 0, 71);
  EXPECT_LT(wrong_share(mended), without / 2) << without;
  expect_the_same_from(33, 71, expected);
}

TEST_F(Rounds, StopsAtItsBudgetAndAtClosure) {
  config = with({"oracle.budget=30"});
  GraphStore store(kN);
  int64_t questions = 0;
  run(store, 0, 41, &questions);
  EXPECT_EQ(questions, 30);
  ASSERT_EQ(said.size(), 1u) << "once";
  EXPECT_NE(said[0].find("no more questions are asked: the budget of 30 questions is spent"), std::string::npos) << said[0];
  said.clear();
  GraphStore again(kN);
  run(again, 41, 61);
  EXPECT_EQ(said.size(), 1u) << "and once more after a restart";
  begin_anew();
  config = with({"oracle.budget_cost=13", "oracle.cost_grid=5"});
  GraphStore paid(kN);
  run(paid, 0, 41);
  EXPECT_GE(cost, 13);
  EXPECT_LT(cost, 30) << "the round that passed it was the last";
  begin_anew();
  config = with({});
  GraphStore closed(kN);
  run(closed, 0, 121, &questions);
  EXPECT_TRUE(closure_reached(closed, {}));
  EXPECT_LE(questions, kN * 3);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("every relation is known or implied"), std::string::npos) << said[0];
}

// The rules that look at time, at a figure of validation and at what the model expected, each with its sentence.
TEST_F(Rounds, StopsByTheClockAtAPlateauAndWhenTheModelExpectsTheAnswers) {
  const auto ends = [&](std::vector<std::string> settings, const std::string& sentence) {
    begin_anew();
    config = with(std::move(settings));
    GraphStore store(kN);
    store.set_labels(templates());
    QueryRounds rounds(config, world.control(), store, AskedOf{all, labels}, LedgerOf{path, "run"}, 0);
    for (int64_t s = 0; s < 31; ++s) {
      rounds.ledger_position();   // waits for the round
      rounds.saw_figure(s, 0.5);
      rounds.at_boundary(s, [&](const std::vector<int64_t>& samples) {   // every class at a corner of its own
        at::Tensor z = at::zeros({static_cast<int64_t>(samples.size()), 3});
        for (size_t k = 0; k < samples.size(); ++k) z[static_cast<int64_t>(k)][labels[samples[k]]] = 1;
        return z;
      });
      if (!rounds.warning().empty()) said.push_back(rounds.warning());
    }
    EXPECT_LT(rounds.questions(), 57) << sentence << ": of 57 samples that nothing is known of";
    ASSERT_EQ(said.size(), 1u) << sentence;
    EXPECT_NE(said[0].find("no more questions are asked: " + sentence), std::string::npos) << said[0];
  };
  ends({"oracle.budget_hours=1e-12"}, "1e-12 hours have passed since the first question (oracle.budget_hours)");
  ends({"oracle.plateau=4", "eval.every=1"}, "the validation figure did not rise in 4 looks (oracle.plateau)");
  ends({"oracle.agreement=0.9", "oracle.guide=embeddings", "oracle.questions_per_round=6"}, "the model expected 90 % of the answers in 3 rounds (oracle.agreement)");
}

// People who do not answer: the round is full, and that is said once.
TEST_F(Rounds, SaysOnceThatAllQuestionsWait) {
  config = with({"oracle.labeler=exchange"});
  GraphStore store(kN);
  run(store, 0, 41);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("no question is asked: 12 wait for an answer"), std::string::npos) << said[0];
  // More may be out than there are to ask: what is left to the sampler is out, too.
  begin_anew();
  config = with({"oracle.labeler=exchange", "oracle.questions_per_round=200"});
  GraphStore few(kN);
  run(few, 0, 41);
  if (world.rank() != 0) return;   // who knows what the sampler found
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("every question that is left is out: 57 wait for an answer"), std::string::npos) << said[0];
}

// One step of deduction: with wrong answers the graph is the same on every rank, at the same steps after a restart; and two samples
// are wrongly taken for alike only if one of them was answered about wrongly, where all that follows spoils others, too.
TEST_F(Rounds, OneStepOfDeductionHoldsWrongAnswersAndRestarts) {
  const auto spoilt_by_others = [&](const GraphStore& store) {
    std::set<int64_t> wrong;
    for (int64_t k = 0; k < store.answers(); ++k) {
      const Link link = store.answer(k);
      if (link.relation == Relation::same && labels[link.i] != labels[link.j]) wrong.insert({link.i, link.j});
    }
    EXPECT_FALSE(wrong.empty());
    int64_t spoilt = 0, alike = 0;
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        bool together = false;
        for_each_alike(store, i, [&](int64_t a) { for_each_alike(store, j, [&](int64_t b) { together |= a == b; }); });
        alike += together;
        spoilt += together && labels[i] != labels[j] && wrong.count(i) + wrong.count(j) == 0;
      }
    }
    EXPECT_GT(alike, 100);
    return spoilt;
  };
  // Classes are found on the way: no label stops a wrong merge.
  config = with({"oracle.noise=0.1", "oracle.sampler=random", "oracle.templates=discover"});
  templates_given = false;
  GraphStore careful(kN, Deduction::once);
  const uint64_t expected = run(careful, 0, 71);
  EXPECT_EQ(spoilt_by_others(careful), 0);
  // Two that many are like are answered to be the same, and are not.
  const auto most_asked = [&](const std::function<bool(int64_t)>& among) {
    int64_t most = -1;
    for (int64_t i = 0; i < kN; ++i) {
      if (among(i) && (most < 0 || careful.partners(i) > careful.partners(most))) most = i;
    }
    return most;
  };
  const int64_t one = most_asked([](int64_t) { return true; }), other = most_asked([&](int64_t i) { return labels[i] != labels[one]; });
  GraphStore worse = careful, naive(kN);
  naive.insert(one, other, Relation::same);
  if (worse.relation(one, other) == Relation::unknown) worse.insert(one, other, Relation::same);
  for (int64_t k = 0; k < careful.answers(); ++k) {
    const Link link = careful.answer(k);
    if (naive.relation(link.i, link.j) == Relation::unknown) naive.insert(link.i, link.j, link.relation);
  }
  EXPECT_EQ(spoilt_by_others(worse), 0);
  EXPECT_GT(spoilt_by_others(naive), 20);
  const std::vector<uint64_t> before = versions;
  versions.resize(33);
  GraphStore again(kN, Deduction::once);
  EXPECT_EQ(run(again, 33, 71), expected);
  EXPECT_EQ(versions, before);
}

}  // namespace
}  // namespace pal
