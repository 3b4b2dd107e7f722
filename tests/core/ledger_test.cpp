// ledger: real SQLite files: replay, refusals, and a writer killed at any moment.
#include "core/oracle/ledger.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/oracle/sqlite.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal {
namespace {

namespace fs = std::filesystem;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    std::string name = (fs::temp_directory_path() / "pal-ledger-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "ledger.sqlite";
  }
  ~LedgerTest() override { fs::remove_all(folder_); }

  // The sentence with which it refuses, or "".
  static std::string refusal(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::data);
      return e.what();
    }
    return "";
  }
  std::string open_refusal(const std::string& run = "run-a") {
    return refusal([&] { Ledger(path_, run); });
  }

  fs::path folder_, path_;
};

std::vector<Decision> answers_to(const Query& q, Verdict verdict, int64_t step) {
  std::vector<Decision> answers;
  for (int64_t m : q.members) answers.push_back({q.id, q.template_sample, m, QueryKind::pair, kNoNode, verdict, step, 0.5});
  return answers;
}

TEST_F(LedgerTest, ReplaysWhatWasRecorded) {
  std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1, 2}}, {0, QueryKind::pair, 8, {9}}};
  {
    Ledger ledger(path_, "run-a");
    EXPECT_EQ(ledger.rounds(), 0);
    ledger.record_queries(queries, {"captcha", 0, 50});
    EXPECT_EQ(queries[0].id, 1);
    EXPECT_EQ(queries[1].id, 2);
    ledger.record_answers(answers_to(queries[1], Verdict::unsure, 200), "labels");
    ledger.record_answers({{1, 7, 3, QueryKind::pair, kNoNode, Verdict::yes, 100, 0.5}, {1, 7, 2, QueryKind::pair, kNoNode, Verdict::no, 100, 0.5}}, "ann");
  }
  Ledger ledger(path_, "run-a");
  const std::vector<Decision> answers = ledger.answers();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].j, 3) << "by effective step, then order of arrival";
  EXPECT_EQ(answers[0].relation(), Relation::same);
  EXPECT_EQ(answers[1].j, 2);
  EXPECT_EQ(answers[1].relation(), Relation::different);
  EXPECT_EQ(answers[1].effective_step, 100);
  EXPECT_EQ(answers[2].query, 2);
  EXPECT_EQ(answers[2].relation(), Relation::unknown);
  EXPECT_DOUBLE_EQ(answers[2].cost, 0.5);
  const std::vector<Query> open = ledger.open_queries();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].id, 1);
  EXPECT_EQ(open[0].kind, QueryKind::captcha);
  EXPECT_EQ(open[0].template_sample, 7);
  EXPECT_EQ(open[0].members, std::vector<int64_t>{1});
  EXPECT_EQ(ledger.questions(), 4);
  EXPECT_DOUBLE_EQ(ledger.cost(), 1.5);
  EXPECT_EQ(ledger.rounds(), 1);
  std::vector<Query> more = {{0, QueryKind::captcha, 4, {6, 5}}};
  ledger.record_queries(more, {"captcha", 4, 100});
  EXPECT_EQ(more[0].id, 3);
  EXPECT_EQ(ledger.rounds(), 5);
  EXPECT_EQ(ledger.open_queries()[1].members, (std::vector<int64_t>{6, 5})) << "in the order asked";
}

TEST_F(LedgerTest, RefusesAnswersThatWereNotAskedOrComeTwice) {
  Ledger ledger(path_, "run-a");
  std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1, 2}}};
  ledger.record_queries(queries, {"captcha", 0, 0});
  const Decision good{1, 7, 3, QueryKind::pair, kNoNode, Verdict::yes, 10, 1};
  const auto both = [&](const Decision& bad) { return refusal([&] { ledger.record_answers({good, bad}, "x"); }); };
  EXPECT_NE(both({2, 7, 1, QueryKind::pair, kNoNode, Verdict::yes, 10, 1}).find("query 2"), std::string::npos);
  EXPECT_NE(both({1, 7, 5, QueryKind::pair, kNoNode, Verdict::yes, 10, 1}).find("7 and 5"), std::string::npos);
  EXPECT_NE(both({1, 8, 1, QueryKind::pair, kNoNode, Verdict::yes, 10, 1}).find("not asked"), std::string::npos);
  EXPECT_NE(both(good).find("second answer"), std::string::npos);
  EXPECT_TRUE(ledger.answers().empty()) << "all or none";
  ledger.record_answers({good}, "x");
  EXPECT_NE(refusal([&] { ledger.record_answers({good}, "x"); }).find("second answer"), std::string::npos);
  EXPECT_EQ(ledger.answers().size(), 1u);
  std::vector<Query> twice = {{0, QueryKind::captcha, 7, {4, 4}}};
  EXPECT_NE(refusal([&] { ledger.record_queries(twice, {"captcha", 1, 0}); }), "");
  EXPECT_EQ(twice[0].id, 0);
  EXPECT_EQ(ledger.questions(), 3);
}

TEST_F(LedgerTest, RefusesAnotherRunNewerSchemaAndForeignFiles) {
  { Ledger ledger(path_, "run-a"); }
  EXPECT_EQ(open_refusal(), "");
  EXPECT_NE(open_refusal("run-b").find("another run: run-a"), std::string::npos);
  Sqlite(path_).run("PRAGMA user_version = 2");
  EXPECT_NE(open_refusal().find("schema: 2"), std::string::npos);
  Sqlite(path_).run("PRAGMA user_version = 1");
  EXPECT_EQ(open_refusal(), "");

  fs::remove(path_);
  Sqlite(path_).run("CREATE TABLE photos(x)");
  EXPECT_NE(open_refusal().find("no ledger of PAL"), std::string::npos);
  std::ofstream(path_, std::ios::trunc) << std::string(5000, 'x');
  EXPECT_NE(open_refusal().find("not a database"), std::string::npos);
  path_ = folder_ / "nowhere" / "ledger.sqlite";
  EXPECT_NE(open_refusal().find("folder exists"), std::string::npos);
}

TEST_F(LedgerTest, HasOneWriter) {
  std::string here;
  {
    Ledger first(path_, "run-a");
    EXPECT_NE(open_refusal().find("another process"), std::string::npos);
    const pid_t child = fork();
    if (child == 0) _exit(open_refusal().find("another process") == std::string::npos ? 1 : 0);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::vector<Query> queries = {{0, QueryKind::pair, 1, {2}}};
    first.record_queries(queries, {"captcha", 0, 0});   // the first goes on undisturbed
  }
  EXPECT_EQ(Ledger(path_, "run-a").questions(), 1);
}

TEST_F(LedgerTest, RefusesAReadOnlyFileAndFolder) {
  { Ledger ledger(path_, "run-a"); }
  // root may write anything: ask as somebody else.
  const auto refused_for_nobody = [&] {
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
      _exit(open_refusal().empty() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  chmod(folder_.c_str(), 0777);
  chmod(path_.c_str(), 0666);
  EXPECT_FALSE(refused_for_nobody()) << "the control";
  chmod(path_.c_str(), 0444);
  EXPECT_TRUE(refused_for_nobody());
  chmod(path_.c_str(), 0666);
  chmod(folder_.c_str(), 0555);
  EXPECT_TRUE(refused_for_nobody());
  chmod(folder_.c_str(), 0777);
  EXPECT_EQ(open_refusal(), "");
}

// Writes rounds of three queries of four members and their answers, and tells after each call that it has returned.
[[noreturn]] void write_for_ever(const std::string& path, int pipe) {
  Ledger ledger(path, "run-a");
  for (int64_t round = ledger.rounds();; ++round) {
    for (const Query& q : ledger.open_queries()) ledger.record_answers(answers_to(q, Verdict::yes, round), "late");
    std::vector<Query> queries;
    for (int64_t q = 0; q < 3; ++q) queries.push_back({0, QueryKind::captcha, 100 * round + q, {1, 2, 3, 4}});
    ledger.record_queries(queries, {"captcha", round, round});
    if (write(pipe, "q", 1) != 1) _exit(1);
    std::vector<Decision> answers;
    for (const Query& q : queries) {
      for (const Decision& a : answers_to(q, Verdict::no, round)) answers.push_back(a);
    }
    ledger.record_answers(answers, "labels");
    if (write(pipe, "a", 1) != 1) _exit(1);
  }
}

TEST_F(LedgerTest, AKilledWriterLosesNothing) {
  int64_t queries = 0, answers = 0;   // calls known to have returned
  Random random(1, Purpose::bench);
  for (int kill_round = 0; kill_round < 8; ++kill_round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      write_for_ever(path_, ends[1]);
    }
    close(ends[1]);
    const int64_t stop = 1 + static_cast<int64_t>(random.below(12));
    char told = 0;
    for (int64_t k = 0; k < stop && read(ends[0], &told, 1) == 1; ++k) (told == 'q' ? queries : answers) += 1;
    usleep(static_cast<useconds_t>(random.below(3000)));
    kill(child, SIGKILL);
    while (read(ends[0], &told, 1) == 1) (told == 'q' ? queries : answers) += 1;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));

    Ledger ledger(path_, "run-a");
    EXPECT_GE(ledger.questions(), queries * 12);
    EXPECT_LE(ledger.questions(), (queries + kill_round + 1) * 12) << "at most one call per kill was on its way";
    EXPECT_EQ(ledger.questions() % 12, 0) << "no half of a call";
    const std::vector<Decision> stored = ledger.answers();
    EXPECT_GE(static_cast<int64_t>(stored.size()), answers * 12);
    EXPECT_EQ(static_cast<int64_t>(stored.size()) + question_count(ledger.open_queries()), ledger.questions());
    for (size_t k = 0; k < stored.size(); ++k) ASSERT_EQ(stored[k].query, static_cast<int64_t>(k / 4) + 1);
  }
  EXPECT_GT(queries, 8);
}

}  // namespace
}  // namespace pal
