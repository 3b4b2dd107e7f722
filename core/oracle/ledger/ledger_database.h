// ledger_database: the inside of a ledger, which its writing (ledger.cpp) and its reading (ledger_reading.cpp) share.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"
#include "core/oracle/ledger/sqlite.h"
#include "core/oracle/ledger/writer_lease.h"

namespace pal::oracle {

inline constexpr const char* kWithdrawn = "withdrawn";  // what the row says by which an answer was taken back

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
