// ledger_sums: notices a damaged ledger when it is opened.
#include <cstring>
#include <map>

#include "core/io/crc32c.h"
#include "core/oracle/ledger/ledger_internal.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

constexpr const char* kRestore = "restore a copy of it, or move it away to start again";
constexpr const char* kColumns = "SELECT id, uuid, query, i, j, answer, cost, annotator, answered_at, seconds";

// The checksum after one more row of kColumns. superseded_by changes later: it is covered by the row that withdraws.
uint32_t next_sum(uint32_t sum, const Statement& row, int64_t withdraws) {
  const auto add = [&](const auto& value) { sum = io::crc32c(&value, sizeof(value), sum); };
  for (const int column : {0, 2, 3, 4}) add(row.integer(column));
  for (const int column : {6, 8, 9}) add(row.real(column));
  for (const int column : {1, 5, 7}) {
    const std::string text = row.text(column);
    add(text.size());
    sum = io::crc32c(text.data(), text.size(), sum);
  }
  add(withdraws);
  return sum;
}

}  // namespace

void check_ledger_pages(const Sqlite& db) {
  Statement check(db, "PRAGMA quick_check(1)");
  const std::string found = check.next() ? check.text(0) : "";
  PAL_DATA_CHECK(found == "ok", "the ledger " + db.path() + " is damaged", found, kRestore);
}

void check_answers(const Sqlite& db) {
  db.run("CREATE TABLE IF NOT EXISTS answer_sum(last INTEGER NOT NULL, crc32c INTEGER NOT NULL)");
  db.run("INSERT INTO answer_sum SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM answer_sum)");
  const int64_t covered = db.number("SELECT last FROM answer_sum");
  const auto expected = static_cast<uint32_t>(db.number("SELECT crc32c FROM answer_sum"));
  const auto check = [&](bool holds) {
    PAL_DATA_CHECK(holds, "the ledger " + db.path() + " is damaged", "its answers do not match their checksum",
                   kRestore);
  };
  Statement row(db, (std::string(kColumns) + ", superseded_by FROM answers ORDER BY id").c_str());
  std::map<int64_t, int64_t> withdraws;  // row: what it withdraws, which comes before it
  uint32_t sum = 0;
  int64_t last = 0;
  while (row.next()) {
    const int64_t id = row.integer(0);
    if (last < covered && id > covered) check(false);
    if (const int64_t by = row.integer(10); by != 0) {
      check(by > id);
      withdraws[by] += id;
    }
    const auto found = withdraws.find(id);
    sum = next_sum(sum, row, found == withdraws.end() ? 0 : found->second);
    if (id == covered) check(sum == expected);
    last = id;
  }
  check(last >= covered && (withdraws.empty() || withdraws.rbegin()->first <= last));
  if (last > covered)
    Statement(db, "UPDATE answer_sum SET last = ?, crc32c = ?").bind(last, static_cast<int64_t>(sum)).next();
}

void add_to_answer_sum(const Sqlite& db, int64_t row, int64_t withdraws) {
  Statement columns(db, (std::string(kColumns) + " FROM answers WHERE id = ?").c_str());
  PAL_ASSERT(columns.bind(row).next(), "the row was just written");
  const uint32_t sum = next_sum(static_cast<uint32_t>(db.number("SELECT crc32c FROM answer_sum")), columns, withdraws);
  Statement(db, "UPDATE answer_sum SET last = ?, crc32c = ?").bind(row, static_cast<int64_t>(sum)).next();
}

}  // namespace pal::oracle
