// ledger_internal: the private parts of a ledger: the connection that its writing (ledger.cpp) and its reading
// (ledger_reading.cpp) share, and its tables (ledger_schema.cpp).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"
#include "core/oracle/ledger/sqlite.h"
#include "core/oracle/ledger/writer_lease.h"

namespace pal::oracle {

inline constexpr const char* kWithdrawn = "withdrawn";  // the verdict of the row that withdraws an answer

// Creates the tables of a new file. An existing file must be a ledger, of this run (kAnyRun: of any) and of a known
// schema; an older schema is brought to the newest. Inside a transaction of the caller.
void prepare_ledger(const Sqlite& db, const std::string& run_id);

// Throws Error (data) when the file is damaged: by SQLite's own check of its pages, and by the checksum of the answers,
// which the table answer_sum keeps. Answers of a program that kept no checksum join it.
void check_ledger_pages(const Sqlite& db);
void check_answers(const Sqlite& db);
// A new row of answers, and the row that it withdraws (0: none), join the checksum.
void add_to_answer_sum(const Sqlite& db, int64_t row, int64_t withdraws);

struct Ledger::Database {
  explicit Database(const std::string& path);
  std::optional<WriterLease> lease;  // released after the lock of db
  Sqlite db;
  mutable std::mutex mutex;

  enum class Outcome { recorded, known };
  Outcome record(const Answer& a) const;
  Outcome withdraw(const Entry& entry) const;
  void refresh(int64_t query, int64_t sample) const;
  std::vector<Question> questions(const std::string& rest) const;
  std::vector<RecordedAnswer> rows(Statement& rows) const;
};

}  // namespace pal::oracle
