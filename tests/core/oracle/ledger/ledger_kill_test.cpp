// ledger_kill: the writer of a ledger and a process that submits answers are killed with SIGKILL at random moments. No
// answer is lost or counted twice, and no question is asked twice. PAL_KILLS sets how often (200).
//
// The writer works like a run: it drains the inbox, answers open questions, asks new questions about pairs that were
// never asked, and decides. Beside it another process submits answers. Each writes to a pipe after a call has returned.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/ledger.h"
#include "kernels/base/philox.h"
#include "tests/test_folder.h"

namespace pal::oracle {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMembers = 4;

// A call that has returned: 'a' recorded answers up to this query, 'h' an answer to it submitted by the other process.
struct Said {
  char what;
  int64_t query;
};

Verdict truth(int64_t i, int64_t j) { return (i + j) % 3 == 0 ? Verdict::yes : Verdict::no; }

[[noreturn]] void write_for_ever(const std::string& run, int pipe) {
  Ledger ledger(run + "/ledger.sqlite", "run");
  Inbox inbox(run);
  std::vector<std::string> warnings;
  const auto answer = [&](int64_t round) {
    std::vector<Answer> answers;
    int64_t last = 0;
    for (const Ledger::Open& open : ledger.open()) {
      for (int64_t m : open.query.members)
        answers.push_back(
            {open.query.id, open.query.template_sample, m, truth(open.query.template_sample, m), "machine"});
      last = open.query.id;
    }
    ledger.record_answers(answers);
    const std::vector<Question> questions = ledger.to_decide();
    ledger.record_decisions(decide(questions, ConsensusKind::majority, {}, round + 1), questions, round);
    const Said said{'a', last};
    if (last > 0 && write(pipe, &said, sizeof(said)) != sizeof(said)) _exit(1);
  };
  inbox.drain(ledger, warnings);
  answer(ledger.rounds());
  for (int64_t round = ledger.rounds();; ++round) {
    inbox.drain(ledger, warnings);
    std::vector<Query> queries;
    for (int64_t q = 0; q < 3; ++q) {
      queries.push_back({0, QueryKind::captcha, 3 * round + q, {}});
      for (int64_t m = 1; m <= kMembers; ++m) queries.back().members.push_back(1'000'000 + m);
    }
    ledger.record_queries(queries, {"captcha", round, round});
    answer(round);
  }
}

// A second answer to every question asked so far, each under its own uuid, some of them twice.
[[noreturn]] void hand_in_for_ever(const std::string& run, int64_t from, useconds_t pause, int pipe) {
  const Inbox inbox(run);
  for (int64_t query = std::max<int64_t>(from, 1);; ++query) {
    const std::string uuid = "person-" + std::to_string(query);
    Answer a{query, -1, 1'000'001, truth(query - 1, 1'000'001), "person"};
    a.uuid = uuid;
    std::string line = answer_line(a);
    line.replace(line.find("\"template\":-1,"), 14, "");
    inbox.submit(uuid, line);
    if (query % 3 == 0) inbox.submit(uuid, line);
    const Said said{'h', query};
    if (write(pipe, &said, sizeof(said)) != sizeof(said)) _exit(1);
    usleep(pause);
  }
}

class LedgerKilled : public testing::Test {
 protected:
  // Everything that was reported as recorded is in the ledger once.
  void expect_whole(int64_t answered, int64_t handed_in) {
    Ledger ledger(run_ + "/ledger.sqlite", "run");
    std::vector<std::string> warnings;
    Inbox(run_).drain(ledger, warnings);
    ASSERT_EQ(ledger.questions() % (3 * kMembers), 0) << "no half of a round";
    const std::vector<Query> queries = ledger.queries();
    std::set<int64_t> templates;
    for (const Query& q : queries) {
      ASSERT_TRUE(templates.insert(q.template_sample).second) << "asked twice: " << q.template_sample;
      ASSERT_EQ(q.members.size(), static_cast<size_t>(kMembers));
    }
    std::map<std::string, int> machine, person;  // by question
    for (const RecordedAnswer& r : ledger.all_answers()) {
      ASSERT_EQ(r.answer.verdict, truth(r.answer.i, r.answer.j));
      ++(r.answer.annotator == "machine" ? machine
                                         : person)[std::to_string(r.answer.query) + ":" + std::to_string(r.answer.j)];
    }
    for (const auto& [question, count] : machine) ASSERT_EQ(count, 1) << question;
    for (const auto& [question, count] : person) ASSERT_EQ(count, 1) << question;
    ASSERT_GE(static_cast<int64_t>(machine.size()) / kMembers, std::min<int64_t>(answered, 1))
        << "answers that were reported as recorded";
    for (int64_t q = 1; q <= answered; ++q) {
      for (int64_t m = 1; m <= kMembers; ++m)
        ASSERT_EQ(machine.count(std::to_string(q) + ":" + std::to_string(1'000'000 + m)) +
                          person.count(std::to_string(q) + ":" + std::to_string(1'000'000 + m)) >
                      0,
                  true)
            << q;
    }
    // Submitted answers to questions that were never asked are refused and kept; all others are in the ledger.
    const int64_t asked = queries.empty() ? 0 : queries.back().id;
    for (int64_t q = 1; q <= std::min(handed_in, asked); ++q) {
      const bool there = person.count(std::to_string(q) + ":1000001") > 0;
      ASSERT_TRUE(there || fs::exists(run_ + "/inbox/rejected/person-" + std::to_string(q) + ".jsonl")) << q;
      seen_person_ += there;
    }
    std::map<std::pair<int64_t, int64_t>, int> decided;
    for (const Decision& d : ledger.decisions()) {
      ASSERT_EQ(d.verdict, truth(d.i, d.j));
      ++decided[{d.query, d.j}];
    }
    ASSERT_LE(decided.size(), static_cast<size_t>(ledger.questions()));
  }

  // Microseconds from the start of a writer to its first answers on disk: disks differ.
  int64_t usual_time() {
    int ends[2];
    if (pipe(ends) != 0) return 0;
    const auto start = std::chrono::steady_clock::now();
    const pid_t writer = fork();
    if (writer == 0) write_for_ever(run_, ends[1]);
    Said said{};
    const bool wrote = read(ends[0], &said, sizeof(said)) == sizeof(said);
    const auto time =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    return wrote ? time : 0;
  }

  const TestFolder folder_;
  const std::string run_ = folder_.path();
  int64_t seen_person_ = 0;
};

TEST_F(LedgerKilled, NothingIsLostAndNothingIsAskedTwice) {
  const char* asked = std::getenv("PAL_KILLS");
  const int kills = asked ? std::atoi(asked) : 200;
  Random random(23, Purpose::bench);
  int64_t answered = 0, handed_in = 0;
  const auto usual = static_cast<uint32_t>(std::clamp<int64_t>(usual_time(), 2000, 200'000));
  for (int round = 0; round < kills; ++round) {
    SCOPED_TRACE(testing::Message() << "seed 23, kill " << round);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t writer = fork();
    if (writer == 0) write_for_ever(run_, ends[1]);
    const pid_t person = fork();
    if (person == 0) hand_in_for_ever(run_, handed_in, usual, ends[1]);
    ASSERT_GT(std::min(writer, person), 0);
    usleep(static_cast<useconds_t>(random.below(3 * usual)));
    kill(random.below(2) == 0 ? writer : person, SIGKILL);  // this one first
    if (random.below(2) == 0) usleep(static_cast<useconds_t>(random.below(3000)));
    for (const pid_t child : {writer, person}) {
      kill(child, SIGKILL);
      int status = 0;
      waitpid(child, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    }
    close(ends[1]);
    for (Said said{}; read(ends[0], &said, sizeof(said)) == sizeof(said);) {
      int64_t& far = said.what == 'a' ? answered : handed_in;
      far = std::max(far, said.query);
    }
    close(ends[0]);
    if (round % 10 == 9 || round + 1 == kills) expect_whole(answered, handed_in);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(answered, kills / 10) << "they did write";  // few times on a busy machine
  EXPECT_GT(handed_in, kills / 10);
  EXPECT_GT(seen_person_, 0);
}

}  // namespace
}  // namespace pal::oracle
