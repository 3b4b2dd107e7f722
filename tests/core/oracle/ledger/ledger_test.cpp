// ledger: real SQLite files: replay, open questions and questions to decide, undo, migration, refusals.
#include "core/oracle/ledger/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/sqlite.h"
#include "core/oracle/ledger/writer_lease.h"
#include "kernels/base/error.h"
#include "tests/killed_at_write.h"
#include "tests/test_folder.h"

namespace pal::oracle {
namespace {

namespace fs = std::filesystem;

class LedgerTest : public testing::Test {
 protected:
  // The sentence of the error, or "".
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
  static void decide_all(Ledger& ledger, int64_t effective, int64_t round) {
    const std::vector<Question> questions = ledger.to_decide();
    ledger.record_decisions(decide(questions, ConsensusKind::majority, {}, effective), questions, round);
  }

  const TestFolder folder_;
  fs::path path_ = folder_ / "ledger.sqlite";
};

Answer answer_of(int64_t query, int64_t i, int64_t j, Verdict verdict, const std::string& who = "ann") {
  return {query, i, j, verdict, who, 2.0, 0.5};
}

TEST_F(LedgerTest, ReplaysWhatWasRecorded) {
  std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1, 2}}, {0, QueryKind::coarse, 8, {9}, 12, "coarse"}};
  {
    Ledger ledger(path_, "run-a");
    EXPECT_EQ(ledger.rounds(), 0);
    ledger.record_queries(queries, {"captcha", 0, 50});
    EXPECT_EQ(queries[0].id, 1);
    EXPECT_EQ(queries[1].id, 2);
    ledger.record_answers({answer_of(2, 8, 9, Verdict::no)});
    decide_all(ledger, 200, 0);
    ledger.record_answers({answer_of(1, 7, 3, Verdict::yes), answer_of(1, 7, 2, Verdict::broken)});
    decide_all(ledger, 100, 0);
  }
  Ledger ledger(path_, "run-a");
  const std::vector<Decision> decisions = ledger.decisions();
  ASSERT_EQ(decisions.size(), 3u);
  EXPECT_EQ(decisions[0].j, 3) << "by effective step, then order of arrival";
  EXPECT_EQ(decisions[0].relation(), graph::Relation::same);
  EXPECT_EQ(decisions[1].verdict, Verdict::broken);
  EXPECT_EQ(decisions[1].relation(), graph::Relation::unknown);
  EXPECT_EQ(decisions[2].kind, QueryKind::coarse);
  EXPECT_EQ(decisions[2].node, 12);
  EXPECT_EQ(decisions[2].effective_step, 200);
  EXPECT_DOUBLE_EQ(decisions[2].cost, 0.5);
  ASSERT_EQ(ledger.open_queries().size(), 1u);
  EXPECT_EQ(ledger.open_queries()[0].members, std::vector<int64_t>{1});
  EXPECT_EQ(ledger.questions(), 4);
  EXPECT_EQ(ledger.open_questions(), 1);
  EXPECT_DOUBLE_EQ(ledger.cost(), 1.5);
  EXPECT_EQ(ledger.rounds(), 1);
  EXPECT_TRUE(ledger.to_decide().empty());
  std::vector<Query> more = {{0, QueryKind::captcha, 4, {6, 5}}};
  ledger.record_queries(more, {"captcha", 4, 100});
  EXPECT_EQ(more[0].id, 3);
  EXPECT_EQ(ledger.rounds(), 5);
  std::vector<Query> none;
  ledger.record_queries(none, {"captcha", 5, 150});
  EXPECT_EQ(ledger.rounds(), 6) << "a round without a question is a round";
  EXPECT_EQ(ledger.rounds_asked(), 2);
  EXPECT_EQ(ledger.open_queries()[1].members, (std::vector<int64_t>{6, 5})) << "in the order asked";
  EXPECT_EQ(ledger.queries()[1].sampler, "coarse") << "a query's own sampler";
  const std::vector<RecordedAnswer> all = ledger.all_answers();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].sampler, "captcha");
  EXPECT_EQ(all[1].model_step, 50);
  EXPECT_DOUBLE_EQ(all[1].answer.seconds, 2.0);
  EXPECT_GT(all[1].answer.answered_at, 1e9);
}

TEST_F(LedgerTest, AQuestionIsOpenUntilItHasItsVotesAndSkipsDoNotCount) {
  Ledger ledger(path_, "run-a");
  std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1}}};
  ledger.record_queries(queries, {"captcha", 0, 0, 2});
  ledger.record_answers({answer_of(1, 7, 3, Verdict::yes, "a"), answer_of(1, 7, 3, Verdict::skip, "b")});
  EXPECT_TRUE(ledger.to_decide().empty());
  EXPECT_EQ(ledger.open_questions(), 2);
  ASSERT_EQ(ledger.open().size(), 2u) << "members with another number of answers are listed apart";
  EXPECT_EQ(ledger.open()[1].votes, 2);
  EXPECT_EQ(ledger.open()[1].query.members, std::vector<int64_t>{3});
  ledger.record_answers({answer_of(1, 7, 3, Verdict::no, "c")});
  ASSERT_EQ(ledger.to_decide().size(), 1u);
  EXPECT_EQ(ledger.to_decide()[0].answers.size(), 3u);
  EXPECT_DOUBLE_EQ(ledger.to_decide()[0].cost, 1.5);
  decide_all(ledger, 10, 0);
  EXPECT_EQ(ledger.decisions()[0].verdict, Verdict::unsure) << "a draw";
  // Part of a contradiction: one more is wanted, up to three.
  std::vector<Query> none;
  ledger.record_queries(none, {"captcha", 1, 0, 2, {{3, 7}}, 3});
  EXPECT_EQ(ledger.open_questions(), 2);
  ledger.record_answers({answer_of(1, 7, 3, Verdict::no, "d")});
  decide_all(ledger, 20, 1);
  EXPECT_EQ(ledger.decisions()[1].verdict, Verdict::no);
  EXPECT_DOUBLE_EQ(ledger.decisions()[1].cost, 0.5) << "what was paid since the last decision";
  ledger.record_queries(none, {"captcha", 2, 0, 2, {{3, 7}}, 3});
  EXPECT_EQ(ledger.open_questions(), 1) << "not more than the most";
}

TEST_F(LedgerTest, UndoSupersedesAndTheQuestionIsDecidedAgain) {
  Ledger ledger(path_, "run-a");
  std::vector<Query> queries = {{0, QueryKind::pair, 7, {3}}};
  ledger.record_queries(queries, {"captcha", 0, 0});
  ledger.record_answers({answer_of(1, 7, 3, Verdict::yes)});
  decide_all(ledger, 10, 0);
  const std::string uuid = ledger.last_answers("ann", 5)[0].answer.uuid;
  Entry undo;
  undo.undo = uuid;
  undo.answer.annotator = "ann";
  EXPECT_EQ(ledger.take({undo}).withdrawn, 1);
  EXPECT_EQ(ledger.take({undo}).known, 1) << "a second undo changes nothing";
  EXPECT_EQ(ledger.open_questions(), 1);
  decide_all(ledger, 20, 1);
  ASSERT_EQ(ledger.decisions().size(), 2u);
  EXPECT_EQ(ledger.decisions()[1].verdict, Verdict::skip) << "open again";
  Answer again = answer_of(1, 7, 3, Verdict::no);
  ledger.record_answers({again});
  decide_all(ledger, 30, 2);
  EXPECT_EQ(ledger.decisions()[2].verdict, Verdict::no);
  const std::vector<RecordedAnswer> all = ledger.all_answers();
  ASSERT_EQ(all.size(), 3u) << "nothing is deleted";
  EXPECT_EQ(all[0].superseded_by, all[1].id);
  EXPECT_EQ(all[1].said, "withdrawn");
  // An answer is withdrawn by its annotator, or by the owner of the run in their own name.
  undo.undo = ledger.last_answers("ann", 1)[0].answer.uuid;
  undo.answer.annotator = "mallory";
  EXPECT_NE(ledger.take({undo}).refused[0].find("mallory withdraws an answer of another annotator"), std::string::npos);
  undo.by = "owner";
  EXPECT_EQ(ledger.take({undo}).withdrawn, 1);
  EXPECT_EQ(ledger.all_answers().back().answer.annotator, "owner");
  undo.undo = "no-such";
  EXPECT_NE(ledger.take({undo}).refused[0].find("no-such"), std::string::npos);
}

TEST_F(LedgerTest, RefusesImpossibleAnswers) {
  Ledger ledger(path_, "run-a");
  std::vector<Query> queries = {{0, QueryKind::captcha, 7, {3, 1, 2}}};
  ledger.record_queries(queries, {"captcha", 0, 0});
  const Answer good = answer_of(1, 7, 3, Verdict::yes);
  const auto both = [&](const Answer& bad) { return refusal([&] { ledger.record_answers({good, bad}); }); };
  EXPECT_NE(both(answer_of(2, 7, 1, Verdict::yes)).find("not asked: query 2"), std::string::npos);
  EXPECT_NE(both(answer_of(1, 7, 5, Verdict::yes)).find("not asked: query 1 about sample 5"), std::string::npos);
  EXPECT_NE(both(answer_of(1, 8, 1, Verdict::yes)).find("template of this query is 7"), std::string::npos);
  EXPECT_NE(both(answer_of(1, 7, 3, Verdict::no)).find("second answer of ann"), std::string::npos);
  Answer future = answer_of(1, 7, 1, Verdict::yes);
  future.answered_at = 1e11;
  EXPECT_NE(both(future).find("from the future"), std::string::npos);
  Answer free = answer_of(1, 7, 1, Verdict::yes);
  free.cost = -1;
  EXPECT_NE(both(free).find("cost"), std::string::npos);
  EXPECT_TRUE(ledger.all_answers().empty()) << "all or none";
  ledger.record_answers({good});
  ledger.record_answers({good});
  EXPECT_EQ(ledger.all_answers().size(), 1u) << "the same answer handed in twice counts once";
  Answer named = answer_of(1, 7, 1, Verdict::yes), other = answer_of(1, 7, 2, Verdict::yes);
  named.uuid = other.uuid = "u-1";
  EXPECT_NE(refusal([&] {
              ledger.record_answers({named, other});
            }).find("another answer has this uuid"),
            std::string::npos);
  // One by one: a wrong entry does not affect the others.
  const LedgerIntake intake =
      ledger.take({{named}, {other}, {answer_of(1, 7, 2, Verdict::no)}, {answer_of(9, 9, 9, Verdict::no)}});
  EXPECT_EQ(intake.recorded, 2);
  EXPECT_EQ(intake.refused[0], "");
  EXPECT_NE(intake.refused[1], "");
  EXPECT_NE(intake.refused[3].find("query 9"), std::string::npos);
  std::vector<Query> twice = {{0, QueryKind::captcha, 7, {4, 4}}};
  EXPECT_NE(refusal([&] { ledger.record_queries(twice, {"captcha", 1, 0}); }), "");
  EXPECT_EQ(twice[0].id, 0);
  EXPECT_EQ(ledger.questions(), 3);
  EXPECT_EQ(ledger.rounds(), 1);
}

TEST_F(LedgerTest, RefusesAnotherRunNewerSchemaAndForeignFiles) {
  { Ledger ledger(path_, "run-a"); }
  EXPECT_EQ(open_refusal(), "");
  EXPECT_EQ(open_refusal(kAnyRun), "");
  EXPECT_NE(open_refusal("run-b").find("another run: run-a"), std::string::npos);
  Sqlite(path_).run("PRAGMA user_version = 3");
  EXPECT_NE(open_refusal().find("schema: 3"), std::string::npos);
  Sqlite(path_).run("PRAGMA user_version = 2");
  EXPECT_EQ(open_refusal(), "");

  fs::remove(path_);
  EXPECT_NE(open_refusal(kAnyRun).find("empty"), std::string::npos);
  fs::remove(path_);
  Sqlite(path_).run("CREATE TABLE photos(x)");
  EXPECT_NE(open_refusal().find("not a PAL ledger"), std::string::npos);
  std::ofstream(path_, std::ios::trunc) << std::string(5000, 'x');
  EXPECT_NE(open_refusal().find("not a database"), std::string::npos);
  path_ = folder_ / "nowhere/ledger.sqlite";
  EXPECT_NE(open_refusal().find("folder exists"), std::string::npos);
}

// A ledger as the first schema had it, made by its own statements.
TEST_F(LedgerTest, MigratesTheFirstSchema) {
  Sqlite(path_).run(R"sql(
    CREATE TABLE run(id TEXT NOT NULL, opened INTEGER NOT NULL);
    CREATE TABLE queries(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, template INTEGER NOT NULL, sampler TEXT NOT NULL,
      round INTEGER NOT NULL, model_step INTEGER NOT NULL, asked_at REAL NOT NULL);
    CREATE TABLE members(query INTEGER NOT NULL REFERENCES queries(id), sample INTEGER NOT NULL,
      position INTEGER NOT NULL, PRIMARY KEY(query, sample)) WITHOUT ROWID;
    CREATE TABLE answers(id INTEGER PRIMARY KEY, query INTEGER NOT NULL, i INTEGER NOT NULL, j INTEGER NOT NULL,
      answer TEXT NOT NULL CHECK(answer IN ('same', 'different', 'unsure')), cost REAL NOT NULL,
      annotator TEXT NOT NULL, answered_at REAL NOT NULL, effective_step INTEGER NOT NULL,
      superseded_by INTEGER REFERENCES answers(id), FOREIGN KEY(query, j) REFERENCES members(query, sample));
    CREATE UNIQUE INDEX one_answer ON answers(query, j) WHERE superseded_by IS NULL;
    INSERT INTO run VALUES ('run-a', 3);
    INSERT INTO queries VALUES (1, 'captcha', 7, 'captcha', 2, 50, 1e9);
    INSERT INTO members VALUES (1, 3, 0), (1, 4, 1), (1, 5, 2);
    INSERT INTO answers VALUES (1, 1, 7, 3, 'different', 0.5, 'ann', 1e9, 100, NULL),
      (2, 1, 7, 4, 'same', 1, 'bob', 1e9, 100, NULL);
    UPDATE answers SET superseded_by = 2 WHERE id = 1;
    INSERT INTO answers VALUES (3, 1, 7, 3, 'same', 0.5, 'ann', 1e9, 150, NULL);
    PRAGMA application_id = 1346456652;
    PRAGMA user_version = 1;
  )sql");
  for (int opened = 0; opened < 2; ++opened) {
    Ledger ledger(path_, "run-a");
    EXPECT_EQ(ledger.questions(), 3);
    EXPECT_EQ(ledger.rounds(), 3);
    ASSERT_EQ(ledger.open_queries().size(), 1u);
    EXPECT_EQ(ledger.open_queries()[0].members, std::vector<int64_t>{5});
    const std::vector<Decision> decisions = ledger.decisions();
    ASSERT_EQ(decisions.size(), 2u);
    EXPECT_EQ(decisions[0].relation(), graph::Relation::same);
    EXPECT_EQ(decisions[0].j, 4);
    EXPECT_EQ(decisions[1].effective_step, 150);
    EXPECT_DOUBLE_EQ(ledger.cost(), 2.0);
    EXPECT_TRUE(ledger.to_decide().empty());
  }
}

TEST_F(LedgerTest, HasOneWriter) {
  {
    Ledger first(path_, "run-a");
    EXPECT_NE(open_refusal().find("another process writes"), std::string::npos);
    const pid_t child = fork();
    if (child == 0)
      _exit(open_refusal().find("process " + std::to_string(getppid()) + " on host") == std::string::npos ? 1 : 0);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::vector<Query> queries = {{0, QueryKind::pair, 1, {2}}};
    first.record_queries(queries, {"captcha", 0, 0});  // the first still writes
    EXPECT_NE(WriterLease::holder(path_), "");
  }
  EXPECT_EQ(WriterLease::holder(path_), "");
  EXPECT_EQ(Ledger(path_, "run-a").questions(), 1);
}

int no_locks(int /*file*/, int command, ...) {
  errno = ENOLCK;
  return command == F_SETLK || command == F_SETLKW ? -1 : 0;
}

// NFS without a lock service: every lock fails at once, which SQLite takes for a lock of another process.
TEST_F(LedgerTest, AFileSystemWithoutLocksGetsASentence) {
  sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  const sqlite3_syscall_ptr real = vfs->xGetSystemCall(vfs, "fcntl");
  for (const char* who : {"a new ledger", "one that exists"}) {
    ASSERT_EQ(vfs->xSetSystemCall(vfs, "fcntl", reinterpret_cast<sqlite3_syscall_ptr>(&no_locks)), SQLITE_OK);
    const std::string said = open_refusal();
    ASSERT_EQ(vfs->xSetSystemCall(vfs, "fcntl", real), SQLITE_OK);
    EXPECT_NE(said.find("has no locks (NFS"), std::string::npos) << who << ": " << said;
    EXPECT_EQ(WriterLease::holder(path_), "") << "the failure leaves no lease";
    std::vector<Query> queries = {{0, QueryKind::pair, 1, {2}}};
    Ledger(path_, "run-a").record_queries(queries, {"captcha", 0, 0});
  }
  EXPECT_EQ(Ledger(path_, "run-a").questions(), 2) << "nothing is lost";
}

TEST_F(LedgerTest, TheLeaseOfADeadOrSilentWriterIsTakenOver) {
  const pid_t child = fork();
  if (child == 0) {
    Ledger* ledger = new Ledger(path_, "run-a");  // dies with it
    _exit(ledger == nullptr);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(fs::exists(path_.string() + ".writer"));
  EXPECT_EQ(open_refusal(), "") << "its process is gone";
  // On another host the process cannot be looked up; its lease expires when it was not touched for a minute.
  const std::string lease = path_.string() + ".writer";
  std::ofstream(lease) << "elsewhere 1 1\n";
  EXPECT_NE(open_refusal().find("process 1 on host elsewhere"), std::string::npos);
  fs::last_write_time(lease, fs::file_time_type::clock::now() - std::chrono::seconds(61));
  EXPECT_EQ(open_refusal(), "");
}

TEST_F(LedgerTest, AWriterWhoseLeaseWasTakenStops) {
  Ledger ledger(path_, "run-a");
  std::ofstream(path_.string() + ".writer", std::ios::trunc) << "elsewhere 1 1\n";
  std::vector<Query> queries = {{0, QueryKind::pair, 1, {2}}};
  try {
    ledger.record_queries(queries, {"captcha", 0, 0});
    ADD_FAILURE() << "it wrote";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("took over the right to write: process 1 on host elsewhere"),
              std::string::npos);
    EXPECT_EQ(e.code(), Exit::lost);
  }
}

TEST(WriterLeaseTest, AWriterKilledWhileItTakesTheLeaseLeavesNone) {
  const TestFolder folder;
  ASSERT_TRUE(killed_at_write([&] { const WriterLease lease(folder / "x"); }));
  EXPECT_FALSE(fs::exists(folder / "x.writer"));
  EXPECT_EQ(WriterLease::holder(folder / "x"), "");
  const WriterLease lease(folder / "x");
  EXPECT_NE(WriterLease::holder(folder / "x"), "");
}

TEST(WriterLeaseTest, TheFileIsTouchedRegularly) {
  const TestFolder folder;
  {
    const WriterLease lease(folder / "x", {0.02, 60});
    const auto old = fs::file_time_type::clock::now() - std::chrono::seconds(1000);
    fs::last_write_time(folder / "x.writer", old);
    for (int k = 0; k < 200 && fs::last_write_time(folder / "x.writer") == old; ++k) usleep(10'000);
    EXPECT_GT(fs::last_write_time(folder / "x.writer"), old);
  }
  EXPECT_FALSE(fs::exists(folder / "x.writer"));
}

TEST_F(LedgerTest, IsNotReadableForOtherUsers) {
  const mode_t mask = umask(022);
  { Ledger ledger(path_, "run-a"); }
  umask(mask);
  EXPECT_EQ(fs::status(path_).permissions(), static_cast<fs::perms>(0640));
}

TEST_F(LedgerTest, RefusesAReadOnlyFileAndFolder) {
  { Ledger ledger(path_, "run-a"); }
  // root may write anything: try as another user.
  const auto refused_for_others = [&] {
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
      _exit(open_refusal().empty() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  chmod(folder_.path().c_str(), 0777);
  chmod(path_.c_str(), 0666);
  EXPECT_FALSE(refused_for_others()) << "the control";
  chmod(path_.c_str(), 0444);
  EXPECT_TRUE(refused_for_others());
  chmod(path_.c_str(), 0666);
  chmod(folder_.path().c_str(), 0555);
  EXPECT_TRUE(refused_for_others());
  chmod(folder_.path().c_str(), 0777);
  EXPECT_EQ(open_refusal(), "");
}

}  // namespace
}  // namespace pal::oracle
