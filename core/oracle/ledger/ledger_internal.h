// ledger_internal: the private parts of a ledger: the connection that its writing (ledger.cpp) and its reading
// (ledger_reading.cpp) share, and its tables (ledger_schema.cpp).
#pragma once

#include <cstdint>
#include <mutex>
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

struct Ledger::Database {
  explicit Database(const std::string& path) : lease(path), db(path) {}
  WriterLease lease;
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
