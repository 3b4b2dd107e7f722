// query_people: answers of people, by files: when they take effect, undo, votes, and the stop rules.
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/io/files.h"
#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/ledger/inbox.h"
#include "tests/core/oracle/oracle_cases.h"
#include "tests/dist/train/rounds_of_questions.h"

namespace pal::dist {
namespace {

// When the run is repeated from the ledger, the answers take effect at the same step.
TEST_F(Rounds, AnswersOfPeopleTakeEffectInTheRoundAfterTheyArrive) {
  spec = with({"oracle.labeler=exchange"});
  graph::GraphStore store(kN);
  int64_t questions = 0;
  const auto people = [&](int64_t s) {
    if (s != 13) return;
    std::ofstream out(folder + "/answers.jsonl");
    for (const std::string& line : oracle::split_lines(io::read_whole_file(folder + "/questions.jsonl"))) {
      const oracle::Query q = oracle::parse_question(line, "questions");
      for (int64_t m : q.members)
        out << oracle::answer_line({q.id, q.template_sample, m,
                                    labels[m] == labels[q.template_sample] ? oracle::Verdict::yes : oracle::Verdict::no,
                                    "ann"});
    }
  };
  run(store, 0, 26, &questions, people);
  for (int64_t s = 0; s < 20; ++s)
    EXPECT_EQ(versions[s], versions[0]) << "handed in before 13, found by the round of 15, in effect at 20, but at "
                                        << s;
  EXPECT_GT(versions[20], versions[19]);
  EXPECT_EQ(questions, 12);
  EXPECT_EQ(open, 12) << "the next questions are open";
  EXPECT_FALSE(leaves);
  expect_the_same_from(7, 26, store.fingerprint());
}

// The ranks choose together, but only rank 0's ledger holds the open questions. Rank 0 broadcasts them, so that no
// rank asks one twice.
TEST_F(Rounds, AllRanksKnowTheOpenQuestions) {
  spec = with({"oracle.labeler=exchange", "oracle.class_guess=embeddings", "oracle.questions_per_round=24"});
  embed = [this](const std::vector<int64_t>& samples, eval::SampleSlice slice) {
    return oracle::corner_rows({samples.begin() + slice.first, samples.begin() + slice.last}, labels, 0.3);
  };
  graph::GraphStore store(kN);
  const auto people = [&](int64_t s) {  // each time the first few, so that some stay open
    if (s % 5 != 3 || s < 8) return;
    std::ofstream out(folder + "/answers.jsonl", std::ios::app);
    int64_t answered = 0;
    for (const std::string& line : oracle::split_lines(io::read_whole_file(folder + "/questions.jsonl"))) {
      const oracle::Query q = oracle::parse_question(line, "questions");
      for (int64_t m : q.members) {
        if (++answered <= 8)
          out << oracle::answer_line(
              {q.id, q.template_sample, m,
               labels[m] == labels[q.template_sample] ? oracle::Verdict::yes : oracle::Verdict::no, "ann"});
      }
    }
  };
  int64_t questions = 0;
  run(store, 0, 41, &questions, people);
  EXPECT_GT(questions, 24);
  EXPECT_GT(open, 0);
  if (world.rank() != 0) return;
  oracle::Ledger ledger(path, "run");
  std::set<std::pair<int64_t, int64_t>> pairs;
  std::multiset<int64_t> out;  // samples of questions without an answer
  for (const oracle::Question& q : ledger.questions_with_answers())
    EXPECT_TRUE(pairs.insert(std::minmax(q.i, q.j)).second) << q.i << " " << q.j << " was asked twice";
  for (const oracle::Query& q : ledger.open_queries()) out.insert(q.members.begin(), q.members.end());
  for (int64_t sample : out) EXPECT_EQ(out.count(sample), 1u) << sample << " is in two open questions";
}

TEST_F(Rounds, ARunMayEndWhilePeopleAnswer) {
  spec = with({"oracle.labeler=exchange", "oracle.wait=exit"});
  {
    graph::GraphStore store(kN);
    run(store, 0, 11);
    EXPECT_TRUE(leaves);
    EXPECT_EQ(open, 12);
  }
  {
    graph::GraphStore store(kN);
    run(store, 11, 11);
    EXPECT_TRUE(leaves) << "no answer arrived: the run ends before a step";
  }
  if (world.rank() == 0) {
    const std::vector<std::string> lines = oracle::split_lines(io::read_whole_file(folder + "/questions.jsonl"));
    const oracle::Query q = oracle::parse_question(lines[0], "questions");
    oracle::Inbox(folder).submit(
        "one", oracle::answer_line({q.id, q.template_sample, q.members[0], oracle::Verdict::unsure, "ann"}));
  }
  world.control().barrier();
  graph::GraphStore store(kN);
  run(store, 11, 11);
  EXPECT_FALSE(leaves);
  EXPECT_EQ(open, 11);
}

// A withdrawn answer is removed from the graph at a step of its own; its question is open again and is not asked twice.
TEST_F(Rounds, AnUndoneAnswerIsRemovedFromTheGraph) {
  at::Tensor pair = at::zeros({2}, at::kLong);
  std::string uuid;
  {
    graph::GraphStore store(kN);
    run(store, 0, 13);
    if (world.rank() == 0) {
      oracle::Ledger ledger(path, "run");
      for (const oracle::RecordedAnswer& r : ledger.all_answers()) {
        if (r.answer.verdict != oracle::Verdict::yes || !uuid.empty()) continue;
        uuid = r.answer.uuid;
        pair = at::tensor(std::vector<int64_t>{r.answer.i, r.answer.j});
      }
    }
    world.control().broadcast(pair, 0);
    EXPECT_EQ(store.relation(pair.data_ptr<int64_t>()[0], pair.data_ptr<int64_t>()[1]), graph::Relation::same);
  }
  const int64_t i = pair.data_ptr<int64_t>()[0], j = pair.data_ptr<int64_t>()[1];
  begin_anew();
  graph::GraphStore store(kN);
  std::vector<graph::Relation> seen;
  run(store, 0, 41, nullptr, [&](int64_t s) {
    seen.push_back(store.relation(i, j));
    if (s == 12) oracle::Inbox(folder).submit("undo", oracle::undo_line({{}, uuid, "ann"}));
  });
  EXPECT_EQ(store.relation(i, j), graph::Relation::unknown);
  if (world.rank() == 0) {
    EXPECT_EQ(seen[20], graph::Relation::same) << "handed in at 12, found by the round of 15, in effect at 20";
    EXPECT_EQ(seen[21], graph::Relation::unknown);
  }
  EXPECT_EQ(open, 1);
  expect_the_same_from(17, 41, store.fingerprint());
}

// A tenth of the answers is wrong. With three votes and repeats where answers contradict, fewer relations are wrong
// than with one answer each, and a restart gives the same graph.
TEST_F(Rounds, VotesAndRepeatsReduceWrongRelations) {
  const auto wrong_share = [&](const graph::GraphStore& store) {
    int64_t wrong = 0, all = 0;
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        if (store.relation(i, j) == graph::Relation::unknown) continue;
        ++all;
        wrong += (store.relation(i, j) == graph::Relation::same) != (labels[i] == labels[j]);
      }
    }
    return static_cast<double>(wrong) / static_cast<double>(std::max<int64_t>(all, 1));
  };
  spec = with({"oracle.noise=0.1"});
  graph::GraphStore naive(kN);
  run(naive, 0, 71);
  const double without = wrong_share(naive);
  begin_anew();
  spec = with({"oracle.noise=0.1", "oracle.votes=3", "oracle.repeats=4", "oracle.annotators=9",
               "oracle.consensus=dawid-skene"});
  graph::GraphStore voted(kN);
  const uint64_t expected = run(voted, 0, 71);
  EXPECT_LT(wrong_share(voted), without / 2) << without;
  expect_the_same_from(33, 71, expected);
}

TEST_F(Rounds, StopsAtItsBudgetAndAtClosure) {
  spec = with({"oracle.budget=30"});
  graph::GraphStore store(kN);
  int64_t questions = 0;
  run(store, 0, 41, &questions);
  EXPECT_EQ(questions, 30);
  ASSERT_EQ(said.size(), 1u) << "once";
  EXPECT_NE(said[0].find("no more questions are asked: the budget of 30 questions is spent"), std::string::npos)
      << said[0];
  said.clear();
  graph::GraphStore again(kN);
  run(again, 41, 61);
  EXPECT_EQ(said.size(), 1u) << "and once more after a restart";
  begin_anew();
  spec = with({"oracle.budget_cost=13", "oracle.cost_grid=5"});
  graph::GraphStore paid(kN);
  run(paid, 0, 41);
  EXPECT_GE(cost, 13);
  EXPECT_LT(cost, 30) << "the round that passed it was the last";
  begin_anew();
  spec = with({});
  graph::GraphStore closed(kN);
  run(closed, 0, 121, &questions);
  EXPECT_TRUE(oracle::closure_reached(closed, {}));
  EXPECT_LE(questions, kN * 3);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("every pair is answered or inferred"), std::string::npos) << said[0];
}

// The stop rules by time, by a validation metric and by the predictions of the model, each with its sentence.
TEST_F(Rounds, StopsByTheClockAtAPlateauAndWhenTheModelPredictsTheAnswers) {
  const auto ends = [&](std::vector<std::string> settings, const std::string& sentence) {
    begin_anew();
    spec = with(std::move(settings));
    graph::GraphStore store(kN);
    store.set_labels(templates());
    QueryRounds rounds(spec, world, store, QuestionContext{all, labels}, LedgerLocation{path, "run"}, 0);
    for (int64_t s = 0; s < 31; ++s) {
      rounds.ledger_position();  // waits for the round
      rounds.saw_figure(s, 0.5);
      rounds.at_boundary(
          s, [&](const std::vector<int64_t>& samples, eval::SampleSlice slice) {  // every class at a corner of its own
            at::Tensor z = at::zeros({slice.last - slice.first, 3});
            for (int64_t k = slice.first; k < slice.last; ++k) z[k - slice.first][labels[samples[k]]] = 1;
            return z;
          });
      if (!rounds.warning().empty()) said.push_back(rounds.warning());
    }
    EXPECT_LT(rounds.questions(), 57) << sentence << ": of 57 samples that nothing is known of";
    ASSERT_EQ(said.size(), 1u) << sentence;
    EXPECT_NE(said[0].find("no more questions are asked: " + sentence), std::string::npos) << said[0];
  };
  ends({"oracle.budget_hours=1e-12"}, "1e-12 hours have passed since the first question (oracle.budget_hours)");
  ends({"oracle.plateau=4", "eval.every=1"}, "the validation figure did not rise in 4 evaluations (oracle.plateau)");
  ends({"oracle.agreement=0.9", "oracle.class_guess=embeddings", "oracle.questions_per_round=6"},
       "the model predicted 90 % of the answers in 3 rounds (oracle.agreement)");
}

// When people do not answer, the round is full; the warning appears once.
TEST_F(Rounds, WarnsOnceThatAllQuestionsAreUnanswered) {
  spec = with({"oracle.labeler=exchange"});
  graph::GraphStore store(kN);
  run(store, 0, 41);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("no question is asked: 12 questions are unanswered"), std::string::npos) << said[0];
  // A round may be larger than the number of questions that remain: then all of them are open.
  begin_anew();
  spec = with({"oracle.labeler=exchange", "oracle.questions_per_round=200"});
  graph::GraphStore few(kN);
  run(few, 0, 41);
  if (world.rank() != 0) return;  // only rank 0 has the sentence
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("every remaining question has been asked: 57 are unanswered"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace pal::dist
