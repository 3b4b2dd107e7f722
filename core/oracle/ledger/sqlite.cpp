#include "core/oracle/ledger/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

constexpr const char* kLocks = "the file system may not support locking (NFS): put the run folder on another one";

bool is_lock_error(int code) {
  return code == SQLITE_IOERR_LOCK || code == SQLITE_IOERR_UNLOCK || code == SQLITE_IOERR_RDLOCK ||
         code == SQLITE_IOERR_CHECKRESERVEDLOCK;
}

std::string what_to_do(int code) {
  if (is_lock_error(code)) return kLocks;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process writes it: wait for that run to end, or stop it; if no process does, the file system has "
             "no locks (NFS without a lock service): put the run folder on another one";
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return "make the file and its folder writable";
    case SQLITE_CANTOPEN:
      return "check that the folder exists and that you may write there";
    case SQLITE_NOTADB:
      return "the file is not a database: move it away";
    case SQLITE_CORRUPT:
      return "the file is damaged: restore a copy, or move it away to start again";
    case SQLITE_PROTOCOL:
      return kLocks;
    default:
      return "inspect the file with the sqlite3 program";
  }
}

// The journal of an unfinished transaction may name a super-journal, of a transaction in several databases. SQLite
// rolls the transaction back and removes the file of that name, wherever it is. PAL has one database and never writes a
// name.
void check_journal(const std::string& journal) {
  struct stat info {};
  if (stat(journal.c_str(), &info) != 0) return;
  const int file = io::open_regular_file(journal);
  constexpr uint8_t kMagic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  uint8_t end[16] = {};  // length of the name, its checksum, the magic number
  const bool whole = fstat(file, &info) == 0 && info.st_size >= 16 && pread(file, end, 16, info.st_size - 16) == 16;
  close(file);
  const bool named = whole && std::any_of(end, end + 4, [](uint8_t b) { return b != 0; });
  PAL_DATA_CHECK(!named || std::memcmp(end + 8, kMagic, 8) != 0,
                 "the journal of a ledger names another file, which SQLite would remove", journal,
                 "no PAL writes such a journal: do not trust the folder, and move the journal away");
}

}  // namespace

void distrust_schema(sqlite3* db) {
  for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    sqlite3_db_config(db, off, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
}

Sqlite::Sqlite(const std::string& path) : path_(path) {
  check_journal(path + "-journal");
  // A new ledger names people: other users of the host may not read it. SQLite gives its journal the same rights.
  const int fresh = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
  if (fresh >= 0) close(fresh);
  const int code =
      sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE, nullptr);
  try {
    check(code);
    distrust_schema(db_);
    // SQLite opens a file that it may not write for reading only; without this check the first answer would fail.
    if (sqlite3_db_readonly(db_, "main") != 0) check(SQLITE_READONLY);
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

Sqlite::~Sqlite() { sqlite3_close(db_); }

void Sqlite::check(int code) const {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  const bool own = db_ != nullptr && sqlite3_errcode(db_) != SQLITE_OK;
  const int kind = code & 0xff;
  if ((kind == SQLITE_IOERR && !is_lock_error(code)) || kind == SQLITE_FULL) {
    const int system = db_ == nullptr ? 0 : sqlite3_system_errno(db_);
    throw DiskError(Exit::data, "database " + path_ + ": " + (own ? sqlite3_errmsg(db_) : sqlite3_errstr(code)) +
                                    (system == 0 ? "" : std::string(" (") + std::strerror(system) + ")") +
                                    "; check the disk and the free space on it");
  }
  PAL_DATA_CHECK(false, "database " + path_, own ? sqlite3_errmsg(db_) : sqlite3_errstr(code), what_to_do(code));
}

void Sqlite::run(const char* sql) const { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }

int64_t Sqlite::number(const char* sql) const {
  Statement statement(*this, sql);
  PAL_ASSERT(statement.next(), "a query for a number has a row");
  return statement.integer(0);
}

Statement::Statement(const Sqlite& db, const char* sql) : db_(db) {
  db.check(sqlite3_prepare_v2(db.handle(), sql, -1, &statement_, nullptr));
}
Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::reset() {
  sqlite3_reset(statement_);  // returns the error of the last step again, which has been reported
  sqlite3_clear_bindings(statement_);
}
void Statement::bind_one(int at, int64_t value) { db_.check(sqlite3_bind_int64(statement_, at, value)); }
void Statement::bind_one(int at, double value) { db_.check(sqlite3_bind_double(statement_, at, value)); }
void Statement::bind_one(int at, const std::string& value) {
  db_.check(sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT));
}
int Statement::code() { return sqlite3_step(statement_); }
bool Statement::next() {
  const int result = code();
  db_.check(result);
  return result == SQLITE_ROW;
}
int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr ? "" : std::string(text, sqlite3_column_bytes(statement_, column));
}

Transaction::Transaction(const Sqlite& db) : db_(db) { db.run("BEGIN IMMEDIATE"); }
Transaction::~Transaction() {
  // A failed COMMIT may have rolled back already: then no transaction is open.
  if (open_ && sqlite3_get_autocommit(db_.handle()) == 0)
    sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::commit() {
  db_.run("COMMIT");
  open_ = false;
}

}  // namespace pal::oracle
