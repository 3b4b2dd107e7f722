#include "core/oracle/ledger/ledger.h"

#include <sqlite3.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "core/oracle/ledger/ledger_internal.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

constexpr double kClockSkew = 300;  // seconds by which the clock of another machine may be ahead

double ledger_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string made_uuid(const Answer& a) {
  return "q" + std::to_string(a.query) + "-m" + std::to_string(a.j) + "-" + to_string(a.verdict) + "-" + a.annotator;
}

}  // namespace

// The lock comes before the lease: a process that holds the lock lives, whatever the age of its lease.
Ledger::Database::Database(const std::string& path) : db((WriterLease::require_free(path), path)) {
  // Exclusive: the lock taken by the first transaction is kept until close. EXTRA: the deletion of the journal, which
  // is the commit, is synced too.
  db.run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=EXTRA; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF");
  db.run("BEGIN EXCLUSIVE; COMMIT; PRAGMA journal_mode=DELETE");
  lease.emplace(path);
}

Ledger::Ledger(const std::string& path, const std::string& run_id) : db_(std::make_unique<Database>(path)) {
  const Sqlite& db = db_->db;
  Transaction transaction(db);
  prepare_ledger(db, run_id);
  transaction.commit();
}

Ledger::~Ledger() = default;

void Ledger::record_queries(std::vector<Query>& queries, const RoundRecord& by) {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  const Sqlite& db = db_->db;
  const double time = ledger_now();
  db_->lease->check();
  Transaction transaction(db);
  Statement(db, "INSERT OR IGNORE INTO rounds VALUES (?, ?, ?)").bind(by.round, by.model_step, time).next();
  int64_t id = db.number("SELECT coalesce(max(id), 0) FROM queries");
  Statement query(db, "INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  Statement member(
      db, "INSERT INTO members(query, sample, position, wanted, open, fresh, expected) VALUES (?, ?, ?, ?, 1, 0, ?)");
  std::vector<Query> numbered = queries;  // the caller's ids change only when all is on disk
  for (Query& q : numbered) {
    PAL_ASSERT(!q.members.empty(), "a query has a member");
    if (q.sampler.empty()) q.sampler = by.sampler;
    q.id = ++id;
    query.bind(q.id, to_string(q.kind), q.template_sample, q.node, q.sampler, by.round, by.model_step, time).next();
    for (size_t k = 0; k < q.members.size(); ++k) {
      const graph::Relation expected = k < q.expected.size() ? q.expected[k] : graph::Relation::unknown;
      member.bind(q.id, q.members[k], static_cast<int64_t>(k), by.votes, static_cast<int64_t>(expected)).next();
    }
  }
  Statement find(db,
                 "SELECT m.query FROM members m JOIN queries q ON q.id = m.query WHERE m.sample = ? AND q.template = ? "
                 "ORDER BY m.query DESC");
  Statement more(db, "UPDATE members SET wanted = wanted + 1, open = 1 WHERE query = ? AND sample = ? AND wanted < ?");
  for (const auto& [i, j] : by.again) {
    for (const auto& [a, b] : {std::pair(i, j), std::pair(j, i)}) {
      if (!find.bind(b, a).next()) continue;
      more.bind(find.integer(0), b, by.most).next();
      break;
    }
  }
  transaction.commit();
  queries = std::move(numbered);
}

Ledger::Database::Outcome Ledger::Database::record(const Answer& a) const {
  const std::string which = "query " + std::to_string(a.query) + " about sample " + std::to_string(a.j);
  const std::string uuid = a.uuid.empty() ? made_uuid(a) : a.uuid;
  const double now = ledger_now(), time = a.answered_at == 0 ? now : a.answered_at;
  Statement before(db, "SELECT query, j, annotator, answer FROM answers WHERE uuid = ?");
  if (before.bind(uuid).next()) {
    const bool same = before.integer(0) == a.query && before.integer(1) == a.j && before.text(2) == a.annotator &&
                      before.text(3) == to_string(a.verdict);
    PAL_DATA_CHECK(same, "another answer has this uuid", uuid,
                   "give every answer an uuid of its own; this one is to " + which);
    return Outcome::known;
  }
  Statement asked(
      db, "SELECT q.template FROM members m JOIN queries q ON q.id = m.query WHERE m.query = ? AND m.sample = ?");
  PAL_DATA_CHECK(asked.bind(a.query, a.j).next(), "answer to a question that was not asked", which,
                 "answer the queries of this ledger: " + db.path());
  const int64_t given = asked.integer(0);
  PAL_DATA_CHECK(a.i == given, "answer to a question that was not asked", which + " and " + std::to_string(a.i),
                 "the template of this query is " + std::to_string(given));
  PAL_DATA_CHECK(std::isfinite(time) && time <= now + kClockSkew, "an answer is from the future, by {} seconds",
                 time - now, "set the clock right; it is to " + which);
  PAL_DATA_CHECK(std::isfinite(a.cost) && a.cost >= 0 && std::isfinite(a.seconds) && a.seconds >= 0,
                 "an answer has the cost and seconds {}", std::to_string(a.cost) + ", " + std::to_string(a.seconds),
                 "give numbers from 0; it is to " + which);
  Statement insert(db,
                   "INSERT INTO answers(uuid, query, i, j, answer, cost, annotator, answered_at, seconds) VALUES (?, "
                   "?, ?, ?, ?, ?, ?, ?, ?)");
  const int code =
      insert.bind(uuid, a.query, a.i, a.j, to_string(a.verdict), a.cost, a.annotator, time, a.seconds).code();
  PAL_DATA_CHECK(code != SQLITE_CONSTRAINT_UNIQUE, "second answer of " + a.annotator + " to", which,
                 "undo the first one before you give another");
  db.check(code);
  add_to_answer_sum(db, db.number("SELECT last_insert_rowid()"), 0);
  refresh(a.query, a.j);
  return Outcome::recorded;
}

Ledger::Database::Outcome Ledger::Database::withdraw(const Entry& entry) const {
  Statement find(db, "SELECT id, query, i, j, answer, superseded_by, annotator FROM answers WHERE uuid = ?");
  PAL_DATA_CHECK(find.bind(entry.undo).next(), "no answer has the uuid to undo", entry.undo, "see pal answers show");
  PAL_DATA_CHECK(find.text(4) != kWithdrawn, "this row is an undo and cannot be undone", entry.undo,
                 "give the answer again");
  PAL_DATA_CHECK(!entry.by.empty() || find.text(6) == entry.answer.annotator,
                 entry.answer.annotator + " withdraws an answer of another annotator", entry.undo,
                 "only " + find.text(6) + " may");
  if (find.integer(5) != 0) return Outcome::known;
  const std::string uuid = entry.answer.uuid.empty() ? "undo-" + entry.undo : entry.answer.uuid;
  Statement insert(db,
                   "INSERT INTO answers(uuid, query, i, j, answer, cost, annotator, answered_at, seconds) VALUES (?, "
                   "?, ?, ?, ?, 0.0, ?, ?, 0.0)");
  insert
      .bind(uuid, find.integer(1), find.integer(2), find.integer(3), std::string(kWithdrawn),
            entry.by.empty() ? entry.answer.annotator : entry.by, ledger_now())
      .next();
  const int64_t row = db.number("SELECT last_insert_rowid()");
  Statement(db, "UPDATE answers SET superseded_by = ? WHERE id = ?").bind(row, find.integer(0)).next();
  add_to_answer_sum(db, row, find.integer(0));
  refresh(find.integer(1), find.integer(3));
  return Outcome::recorded;
}

// The answers of a question changed.
void Ledger::Database::refresh(int64_t query, int64_t sample) const {
  Statement(
      db,
      "UPDATE members SET fresh = 1, open = wanted > (SELECT count(*) FROM answers a WHERE a.query = members.query AND "
      "a.j = members.sample AND a.superseded_by IS NULL AND a.answer <> 'withdrawn' AND a.answer <> 'skip') "
      "WHERE query = ? AND sample = ?")
      .bind(query, sample)
      .next();
}

int64_t Ledger::record_answers(const std::vector<Answer>& answers) {
  if (answers.empty()) return 0;
  const std::lock_guard<std::mutex> lock(db_->mutex);
  db_->lease->check();
  Transaction transaction(db_->db);
  int64_t fresh = 0;
  for (const Answer& a : answers) fresh += db_->record(a) == Database::Outcome::recorded;
  transaction.commit();
  return fresh;
}

LedgerIntake Ledger::take(const std::vector<Entry>& entries) {
  LedgerIntake intake;
  const std::lock_guard<std::mutex> lock(db_->mutex);
  db_->lease->check();
  Transaction transaction(db_->db);
  Statement of(db_->db, "SELECT template FROM queries WHERE id = ?");
  for (const Entry& entry : entries) {
    intake.refused.emplace_back();
    try {
      const bool undo = !entry.undo.empty();
      Answer a = entry.answer;
      if (a.i < 0 && of.bind(a.query).next()) a.i = of.integer(0);  // not given: the template of the query
      const auto outcome = undo ? db_->withdraw(entry) : db_->record(a);
      ++(outcome == Database::Outcome::known ? intake.known : undo ? intake.withdrawn : intake.recorded);
    } catch (const DiskError&) {
      throw;
    } catch (const Error& e) {
      if (sqlite3_get_autocommit(db_->db.handle()) != 0) throw;  // SQLite rolled everything back (a full disk)
      intake.refused.back() = e.what();
    }
  }
  transaction.commit();
  return intake;
}

void Ledger::record_decisions(const std::vector<Decision>& decisions, const std::vector<Question>& questions,
                              int64_t round) {
  PAL_ASSERT(decisions.size() == questions.size(), "a question for each decision");
  if (decisions.empty()) return;
  const std::lock_guard<std::mutex> lock(db_->mutex);
  const Sqlite& db = db_->db;
  db_->lease->check();
  Transaction transaction(db);
  Statement insert(
      db,
      "INSERT INTO decisions(query, i, j, answer, cost, confidence, effective_step, round, decided_at, seen) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Statement settled(db, "UPDATE members SET fresh = 0 WHERE query = ? AND sample = ?");
  const double time = ledger_now();
  for (size_t k = 0; k < decisions.size(); ++k) {
    const Decision& d = decisions[k];
    insert
        .bind(d.query, d.i, d.j, to_string(d.verdict), d.cost, d.confidence, d.effective_step, round, time,
              questions[k].newest)
        .next();
    settled.bind(d.query, d.j).next();
  }
  transaction.commit();
}

int64_t Ledger::adopt(const std::vector<Query>& queries, int64_t votes) {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  const Sqlite& db = db_->db;
  const double time = ledger_now();
  db_->lease->check();
  Transaction transaction(db);
  Statement known(db, "SELECT 1 FROM queries WHERE id = ?");
  Statement query(db, "INSERT INTO queries VALUES (?, ?, ?, ?, ?, 0, 0, ?)");
  Statement member(
      db, "INSERT INTO members(query, sample, position, wanted, open, fresh, expected) VALUES (?, ?, ?, ?, 1, 0, 0)");
  int64_t fresh = 0;
  for (const Query& q : queries) {
    if (known.bind(q.id).next()) continue;
    query.bind(q.id, to_string(q.kind), q.template_sample, q.node, q.sampler, time).next();
    for (size_t k = 0; k < q.members.size(); ++k)
      member.bind(q.id, q.members[k], static_cast<int64_t>(k), votes).next();
    ++fresh;
  }
  if (fresh > 0) Statement(db, "INSERT OR IGNORE INTO rounds VALUES (0, 0, ?)").bind(time).next();
  transaction.commit();
  return fresh;
}

void Ledger::record_figure(int64_t step, double value) {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement(db_->db, "INSERT OR REPLACE INTO figures VALUES (?, ?)").bind(step, value).next();
}

}  // namespace pal::oracle
