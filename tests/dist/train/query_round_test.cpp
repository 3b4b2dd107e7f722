// query_round: messages are decoded as they were encoded; every rank has the same graph, also after a restart; all
// ranks choose together.
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "core/graph/similarity_groups.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"
#include "tests/core/oracle/oracle_cases.h"
#include "tests/core/spec_of.h"
#include "tests/dist/train/rounds_of_questions.h"

namespace pal::dist {
namespace {

TEST(RoundMessage, IsDecodedAsItWasEncoded) {
  RoundMessage m{40, 3, oracle::StopReason::cost};
  m.decisions = {{7, 3, 4, oracle::QueryKind::captcha, oracle::kNoNode, oracle::Verdict::yes, 100, 0.5, 0.75},
                 {7, 3, 1'000'000'000'000, oracle::QueryKind::coarse, 12, oracle::Verdict::no, 101, 1.25, 1}};
  for (int64_t expected : {1, 2, 9}) {
    const RoundMessage d =
        broadcast_round(test_world().rank() == 0 ? m : RoundMessage{}, expected, test_world().control());
    EXPECT_EQ(d.asked, 40);
    EXPECT_EQ(d.open, 3);
    EXPECT_EQ(d.stop, oracle::StopReason::cost);
    ASSERT_EQ(d.decisions.size(), 2u) << "also when there are more than expected";
    EXPECT_EQ(d.decisions[0].relation(), graph::Relation::same);
    EXPECT_EQ(d.decisions[0].confidence, 0.75);
    EXPECT_EQ(d.decisions[1].j, 1'000'000'000'000);
    EXPECT_EQ(d.decisions[1].node, 12);
    EXPECT_EQ(d.decisions[1].cost, 1.25);
    EXPECT_EQ(d.decisions[1].effective_step, 101);
  }
}

TEST(RoundMessage, QueriesAreDecodedAsTheyWereEncoded) {
  const std::vector<oracle::Query> out = {
      {.id = 7, .kind = oracle::QueryKind::coarse, .template_sample = 3, .members = {4, 1'000'000'000'000}, .node = 12},
      {.id = 8, .kind = oracle::QueryKind::pair, .template_sample = 5, .members = {}}};
  for (const std::vector<oracle::Query>& queries : {out, std::vector<oracle::Query>{}}) {
    const std::vector<oracle::Query> in =
        broadcast_queries(test_world().rank() == 0 ? queries : std::vector<oracle::Query>{}, test_world().oracle());
    ASSERT_EQ(in.size(), queries.size());
    for (size_t k = 0; k < in.size(); ++k) {
      EXPECT_EQ(in[k].id, queries[k].id);
      EXPECT_EQ(in[k].kind, queries[k].kind);
      EXPECT_EQ(in[k].template_sample, queries[k].template_sample);
      EXPECT_EQ(in[k].members, queries[k].members);
      EXPECT_EQ(in[k].node, queries[k].node);
    }
  }
}

TEST_F(Rounds, AnswersTakeEffectExactlyOneRoundLater) {
  graph::GraphStore store(kN);
  int64_t questions = 0;
  run(store, 0, 21, &questions);
  for (int64_t s = 0; s < 10; ++s)
    EXPECT_EQ(versions[s], versions[0]) << "nothing is in effect before step 10, but at " << s;
  EXPECT_GT(versions[10], versions[9]);
  EXPECT_EQ(versions[14], versions[10]);
  EXPECT_GT(versions[15], versions[14]);
  EXPECT_EQ(questions, 36);  // rounds at 5, 10, 15; that of 20 has begun
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (store.relation(i, j) != graph::Relation::unknown) {
        EXPECT_EQ(store.relation(i, j) == graph::Relation::same, labels[i] == labels[j]);
      }
    }
  }
}

TEST_F(Rounds, RestartedRunUsesTheSameAnswersAtTheSameSteps) {
  graph::GraphStore calm(kN);
  const uint64_t expected = run(calm, 0, 31);
  const std::vector<uint64_t> calm_versions = versions;
  begin_anew();
  {
    graph::GraphStore first(kN);
    run(first, 0, 18);
  }
  versions.resize(12);  // the restart begins at a checkpoint of step 12, older than the ledger
  graph::GraphStore second(kN);
  EXPECT_EQ(run(second, 12, 31), expected);
  EXPECT_EQ(versions, calm_versions);
}

std::atomic<int> failures_left{0};
ssize_t failing_write(int file, const void* from, size_t bytes, off_t at) {
  if (failures_left.fetch_sub(1) <= 0) return pwrite(file, from, bytes, at);
  errno = EIO;
  return -1;
}

// Rank 0 repeats a failed write of the ledger after a second; after a second failure the job restarts.
TEST_F(Rounds, AFailedWriteOfTheLedgerIsRepeated) {
  if (world.size() > 2) return;  // only rank 0 fails
  graph::GraphStore calm(kN);
  const uint64_t expected = run(calm, 0, 31);
  begin_anew();
  sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  for (const char* name : {"pwrite", "pwrite64"}) {  // the one that SQLite was built with
    if (vfs->xGetSystemCall(vfs, name) != nullptr)
      vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(&failing_write));
  }
  graph::GraphStore store(kN);
  EXPECT_EQ(run(store, 0, 31, nullptr, [](int64_t s) { failures_left = s == 13 ? 1 : failures_left.load(); }),
            expected);
  EXPECT_TRUE(failures_left <= 0 || world.rank() != 0) << "no write has failed";
  vfs->xSetSystemCall(vfs, nullptr, nullptr);
}

// A checkpoint contains the state of the ledger: rank 0 waits for a round that has begun, however long it takes.
TEST_F(Rounds, ACheckpointWaitsForTheRoundThatHasBegun) {
  std::promise<void> release;
  std::atomic<bool> released = false;
  QuestionContext of{all, labels};
  of.before_round = [held = release.get_future().share()](int64_t) { held.wait(); };
  graph::GraphStore store(kN);
  store.set_labels(templates());
  QueryRounds rounds(spec, world, store, of, LedgerLocation{path, "run"}, 0);
  for (int64_t s = 0; s <= 5; ++s) rounds.at_boundary(s, {});
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    released = true;
    release.set_value();
  });
  EXPECT_EQ(rounds.ledger_position(), 0) << "its answers are not in effect yet";
  EXPECT_TRUE(released || world.rank() != 0) << "a run that resumes here would never ask this round";
  later.join();
  for (int64_t s = 6; s <= 10; ++s) rounds.at_boundary(s, {});
  EXPECT_EQ(rounds.ledger_position(), 12);
}

TEST_F(Rounds, RanksWithAnotherGraphAreDetected) {
  if (world.size() == 1) return;
  graph::GraphStore store(kN);
  QueryRounds rounds(spec, world, store, QuestionContext{all, labels}, LedgerLocation{path, "run"}, 0);
  for (int64_t s = 0; s < 5; ++s) rounds.at_boundary(s, {});
  if (world.rank() == world.size() - 1) store.set_labels(labels);
  try {
    rounds.at_boundary(5, {});
    ADD_FAILURE() << "not seen";
  } catch (const Error& e) {  // on every rank
    EXPECT_EQ(e.code(), Exit::lost);
    EXPECT_NE(std::string(e.what()).find("rank " + std::to_string(world.size() - 1) + " of"), std::string::npos)
        << e.what();
  }
}

// Each rank holds a slice of the pool, and they choose together over MPI. One process with the whole pool chooses the
// same.
TEST_F(Rounds, RanksChooseTogetherWhatOneProcessChooses) {
  graph::GraphStore store(kN);
  store.set_labels(templates());
  for (const std::string& name : oracle::sampler_names()) {
    if (name == "coarse") continue;  // the set has no taxonomy
    const auto sampler = oracle::make_query_sampler(spec_of({"oracle.sampler=" + name}).oracle);
    if (sampler->needs() == oracle::PoolNeeds::samples) continue;
    const oracle::Round round{.seed = 3, .round = 2, .questions = 12};
    oracle::Pool whole{all, oracle::corner_rows(all, labels, 0.4)}, own = whole;
    const eval::SampleSlice slice = eval::own_slice(kN, world.oracle());
    own.embeddings = whole.embeddings.narrow(0, slice.first, slice.last - slice.first).contiguous();
    own.first = slice.first;
    own.comm = &world.oracle();
    std::vector<oracle::Query> alone = sampler->choose(store, whole, round),
                               together = sampler->choose(store, own, round);
    oracle::predict_answers(store, whole, alone);
    oracle::predict_answers(store, own, together);
    ASSERT_EQ(together.size(), alone.size()) << name;
    ASSERT_FALSE(alone.empty()) << name;
    for (size_t k = 0; k < alone.size(); ++k) {
      EXPECT_EQ(together[k].template_sample, alone[k].template_sample) << name;
      EXPECT_EQ(together[k].members, alone[k].members) << name;
      EXPECT_EQ(together[k].expected, alone[k].expected) << name;
    }
  }
}

// Every rank embeds its own slice of the pool and no more.
TEST_F(Rounds, ARankEmbedsItsOwnSliceOfThePool) {
  spec = with({"oracle.class_guess=embeddings"});
  graph::GraphStore store(kN);
  store.set_labels(templates());
  int64_t embedded = 0;
  const auto embed = [&](const std::vector<int64_t>& samples, eval::SampleSlice slice) {
    embedded += slice.last - slice.first;
    return oracle::corner_rows({samples.begin() + slice.first, samples.begin() + slice.last}, labels, 0.3);
  };
  QueryRounds rounds(spec, world, store, QuestionContext{all, labels}, LedgerLocation{path, "run"}, 0);
  for (int64_t s = 0; s <= 10; ++s) rounds.at_boundary(s, embed);
  at::Tensor total = at::zeros({1}, at::kLong);
  *total.data_ptr<int64_t>() = embedded;
  world.control().all_reduce(total);
  EXPECT_EQ(total.item<int64_t>(), 2 * kN) << "two rounds of the whole pool, each sample on one rank";
  EXPECT_EQ(rounds.questions(), 12);
  EXPECT_LE(embedded, 2 * (kN / world.size() + 1));
}

// graph.deduction=once: with wrong answers the graph is the same on every rank, also after a restart. Two samples are
// wrongly the same only if an answer about one of them was wrong; with longer chains other pairs become wrong, too.
TEST_F(Rounds, OneStepOfDeductionWithWrongAnswersAndRestarts) {
  const auto spoilt_by_others = [&](const graph::GraphStore& store) {
    std::set<int64_t> wrong;
    for (int64_t k = 0; k < store.answers(); ++k) {
      const graph::Link link = store.answer(k);
      if (link.relation == graph::Relation::same && labels[link.i] != labels[link.j]) wrong.insert({link.i, link.j});
    }
    EXPECT_FALSE(wrong.empty());
    int64_t spoilt = 0, alike = 0;
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        bool together = false;
        graph::for_each_similarity_group(store, i, [&](int64_t a) {
          graph::for_each_similarity_group(store, j, [&](int64_t b) { together |= a == b; });
        });
        alike += together;
        spoilt += together && labels[i] != labels[j] && wrong.count(i) + wrong.count(j) == 0;
      }
    }
    EXPECT_GT(alike, 100);
    return spoilt;
  };
  // Classes are discovered: no label prevents a wrong merge.
  spec = with({"oracle.noise=0.1", "oracle.sampler=random", "oracle.templates=discover"});
  templates_given = false;
  graph::GraphStore careful(kN, graph::Deduction::once);
  const uint64_t expected = run(careful, 0, 71);
  EXPECT_EQ(spoilt_by_others(careful), 0);
  // A wrong answer joins two samples that many others were answered to equal.
  const auto most_asked = [&](const std::function<bool(int64_t)>& among) {
    int64_t most = -1;
    for (int64_t i = 0; i < kN; ++i) {
      if (among(i) && (most < 0 || careful.partners(i) > careful.partners(most))) most = i;
    }
    return most;
  };
  const int64_t one = most_asked([](int64_t) { return true; }),
                other = most_asked([&](int64_t i) { return labels[i] != labels[one]; });
  graph::GraphStore worse = careful, naive(kN);
  naive.insert(one, other, graph::Relation::same);
  if (worse.relation(one, other) == graph::Relation::unknown) worse.insert(one, other, graph::Relation::same);
  for (int64_t k = 0; k < careful.answers(); ++k) {
    const graph::Link link = careful.answer(k);
    if (naive.relation(link.i, link.j) == graph::Relation::unknown) naive.insert(link.i, link.j, link.relation);
  }
  EXPECT_EQ(spoilt_by_others(worse), 0);
  EXPECT_GT(spoilt_by_others(naive), 20);
  const std::vector<uint64_t> before = versions;
  versions.resize(33);
  graph::GraphStore again(kN, graph::Deduction::once);
  EXPECT_EQ(run(again, 33, 71), expected);
  EXPECT_EQ(versions, before);
}

}  // namespace
}  // namespace pal::dist
