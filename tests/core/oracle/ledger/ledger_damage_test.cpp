// ledger_damage: ledgers whose writer is suspended, and ledgers whose file was cut or changed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/io/files.h"
#include "core/oracle/ledger/ledger.h"
#include "core/oracle/ledger/sqlite.h"
#include "core/oracle/ledger/writer_lease.h"
#include "kernels/base/error.h"
#include "tests/test_folder.h"

namespace pal::oracle {
namespace {

namespace fs = std::filesystem;

// The sentence of the error, or "".
std::string refusal_of_opening(const std::string& path) {
  try {
    Ledger(path, "run-a");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::data);
    return e.what();
  }
  return "";
}

class LedgerInDoubt : public testing::Test {
 protected:
  const TestFolder folder_;
  const fs::path path_ = folder_ / "ledger.sqlite";
};

// A process that opens the ledger, stops itself, and records a round when it is continued.
class SuspendedWriter {
 public:
  explicit SuspendedWriter(const std::string& path) : child_(fork()) {
    if (child_ == 0) {
      int code = 1;
      try {
        Ledger ledger(path, "run-a");
        raise(SIGSTOP);
        std::vector<Query> queries = {{0, QueryKind::pair, 1, {2}}};
        ledger.record_queries(queries, {"captcha", 0, 0});
        code = 0;
      } catch (const Error& e) {
        code = static_cast<int>(e.code());
      }
      _exit(code);
    }
    int status = 0;
    waitpid(child_, &status, WUNTRACED);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  int code_when_continued() {
    kill(child_, SIGCONT);
    int status = 0;
    waitpid(child_, &status, 0);
    return WEXITSTATUS(status);
  }
  const pid_t child_;
};

TEST_F(LedgerInDoubt, ASuspendedWriterKeepsItsLease) {
  { Ledger ledger(path_, "run-a"); }
  SuspendedWriter writer(path_);
  const std::string lease = path_.string() + ".writer", content = io::read_whole_file(lease);
  fs::last_write_time(lease, fs::file_time_type::clock::now() - std::chrono::seconds(1000));
  EXPECT_NE(refusal_of_opening(path_).find("process " + std::to_string(writer.child_) + " on host"), std::string::npos);
  EXPECT_NE(WriterLease::holder(path_), "");
  EXPECT_EQ(io::read_whole_file(lease), content);
  EXPECT_EQ(writer.code_when_continued(), 0);
  EXPECT_EQ(Ledger(path_, "run-a").questions(), 1);
}

// A lease that looks abandoned is not taken over while a process holds the lock of the database.
TEST_F(LedgerInDoubt, TheLockIsTakenBeforeTheLease) {
  { Ledger ledger(path_, "run-a"); }
  SuspendedWriter writer(path_);
  const std::string lease = path_.string() + ".writer";
  std::ofstream(lease, std::ios::trunc) << "elsewhere 1 1\n";
  fs::last_write_time(lease, fs::file_time_type::clock::now() - std::chrono::seconds(1000));
  EXPECT_NE(refusal_of_opening(path_).find("locked"), std::string::npos);
  EXPECT_EQ(io::read_whole_file(lease), "elsewhere 1 1\n");
  EXPECT_EQ(writer.code_when_continued(), static_cast<int>(Exit::lost)) << "its lease was taken";
}

TEST_F(LedgerInDoubt, AnotherProcessWithTheSameIdDoesNotHoldTheLease) {
  const std::string lease = path_.string() + ".writer";
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  std::ofstream(lease) << host << " " << getpid() << " 1 1\n";  // this process did not start with the machine
  fs::last_write_time(lease, fs::file_time_type::clock::now() - std::chrono::seconds(61));
  EXPECT_EQ(refusal_of_opening(path_), "");
}

// A ledger of a hundred answers, two of them withdrawn, as bytes.
Answer kept_answer(int64_t member) { return {1, 500, member, Verdict::yes, "the-annotator", 2.0, 0.5}; }

class DamagedLedger : public LedgerInDoubt {
 protected:
  void SetUp() override {
    Ledger ledger(path_, "run-a");
    std::vector<Query> queries = {{0, QueryKind::captcha, 500, {}}};
    for (int64_t m = 0; m < 100; ++m) queries[0].members.push_back(m);
    ledger.record_queries(queries, {"captcha", 0, 0});
    std::vector<Answer> answers;
    for (int64_t m = 0; m < 100; ++m) answers.push_back(kept_answer(m));
    ledger.record_answers(answers);
    for (const int64_t row : {3, 8}) {
      const std::string uuid = ledger.all_answers()[row].answer.uuid;
      EXPECT_EQ(ledger.take({{kept_answer(0), uuid}}).withdrawn, 1);
    }
  }
  std::string refusal_after(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return refusal_of_opening(path_);
  }
  // The same by SQL: pages stay as SQLite writes them.
  std::string refusal_after_sql(const char* sql) {
    const std::string before = io::read_whole_file(path_);
    Sqlite(path_).run(sql);
    const std::string said = refusal_of_opening(path_);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << before;
    return said;
  }
};

TEST_F(DamagedLedger, IsRefusedWhereverItIsCut) {
  const std::string whole = io::read_whole_file(path_);
  for (size_t cut = 1; cut < whole.size() / 2; cut += 1500)
    EXPECT_NE(refusal_after(whole.substr(0, whole.size() - cut)), "") << cut << " bytes are missing";
  EXPECT_EQ(refusal_after(whole), "");
}

TEST_F(DamagedLedger, IsRefusedWhenAnAnswerChanged) {
  std::string bytes = io::read_whole_file(path_);
  const size_t at = bytes.find("yes", bytes.find("the-annotator") - 40);
  ASSERT_NE(at, std::string::npos);
  for (const char* name : {"the-annotator", "q1-m50-yes-the-annotator"}) {
    std::string flipped = bytes;
    for (size_t k = flipped.find(name); k != std::string::npos; k = flipped.find(name, k + 1)) flipped[k] ^= 1;
    EXPECT_NE(refusal_after(flipped).find("is damaged"), std::string::npos) << name;
  }
  ASSERT_EQ(refusal_after(bytes), "");
  for (const char* sql :
       {"UPDATE answers SET cost = 3 WHERE id = 17", "UPDATE answers SET answer = 'no' WHERE id = 99",
        "UPDATE answers SET answered_at = answered_at + 1 WHERE id = 1", "DELETE FROM answers WHERE id = 50",
        "DELETE FROM answers WHERE id = 102", "UPDATE answers SET superseded_by = NULL WHERE id = 4",
        "UPDATE answers SET superseded_by = 101 WHERE id = 9", "UPDATE answers SET superseded_by = 777 WHERE id = 60",
        "UPDATE answers SET superseded_by = 102 WHERE id = 60"})
    EXPECT_NE(refusal_after_sql(sql).find("is damaged"), std::string::npos) << sql;
}

// What a stranger's file can hold beside tables: none of it runs, and the ledger is refused.
TEST_F(DamagedLedger, IsRefusedWhenItHoldsMoreThanTables) {
  for (const char* sql :
       {"CREATE TRIGGER evil AFTER UPDATE ON run BEGIN DELETE FROM answers; END",
        "CREATE TRIGGER evil AFTER INSERT ON answers BEGIN UPDATE answers SET answer = 'no'; END",
        "CREATE VIEW evil AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "ALTER TABLE figures RENAME TO old; CREATE VIEW figures AS SELECT * FROM old",
        "CREATE VIRTUAL TABLE evil USING fts4(x)"}) {
    const std::string said = refusal_after_sql(sql);
    EXPECT_NE(said.find("holds what no PAL writes"), std::string::npos) << sql << ": " << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST_F(LedgerInDoubt, StatementsInTheFileDoNotRun) {
  const Sqlite db(path_);
  db.run(
      "CREATE TABLE t(x); CREATE TABLE seen(x); CREATE VIEW v AS SELECT x FROM t;"
      "CREATE TRIGGER w AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (1); END; INSERT INTO t VALUES (1)");
  EXPECT_EQ(db.number("SELECT count(*) FROM seen"), 0);
  EXPECT_THROW(db.number("SELECT x FROM v"), Error);
}

// A journal as a transaction in two databases leaves it. SQLite would remove the file that it names.
TEST_F(DamagedLedger, AJournalThatNamesAnotherFileIsRefused) {
  const std::string victim = folder_ / "precious.txt", journal = path_.string() + "-journal";
  std::ofstream(victim) << "data";
  const std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  const auto word = [](uint32_t n) {
    return std::string{static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
                       static_cast<char>(n)};
  };
  const uint32_t page = 4096, pages = static_cast<uint32_t>(fs::file_size(path_) / page);
  uint32_t sum = 0;
  for (const char c : victim) sum += static_cast<unsigned char>(c);
  std::string head = magic + word(0) + word(0) + word(pages) + word(512) + word(page);
  head.resize(512, '\0');
  std::ofstream(journal, std::ios::binary) << head << word(0x40000000 / page + 1) << victim
                                           << word(static_cast<uint32_t>(victim.size())) << word(sum) << magic;
  EXPECT_NE(refusal_of_opening(path_).find("names another file, which SQLite would remove: " + journal),
            std::string::npos);
  EXPECT_TRUE(fs::exists(victim));
  std::ofstream(journal, std::ios::binary | std::ios::trunc) << head;  // of one database
  EXPECT_EQ(refusal_of_opening(path_), "");
}

// An older program does not update the checksum: its answers are added to it when this program opens the ledger.
TEST_F(DamagedLedger, AnswersOfAnOlderProgramJoinTheChecksum) {
  EXPECT_EQ(refusal_after_sql("DROP TABLE answer_sum"), "");
  Sqlite(path_).run(
      "INSERT INTO answers(uuid, query, i, j, answer, cost, annotator, answered_at, seconds) "
      "VALUES ('u', 1, 500, 7, 'no', 1.0, 'old', 1.0, 0.0)");
  EXPECT_EQ(refusal_of_opening(path_), "");
  EXPECT_EQ(Ledger(path_, "run-a").all_answers().size(), 103u);
  EXPECT_NE(refusal_after_sql("UPDATE answers SET annotator = 'new' WHERE uuid = 'u'").find("is damaged"),
            std::string::npos);
}

}  // namespace
}  // namespace pal::oracle
