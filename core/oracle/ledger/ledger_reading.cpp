// ledger_reading: reads questions, answers and decisions from a ledger.
#include <mutex>
#include <tuple>

#include "core/oracle/ledger/ledger_internal.h"

namespace pal::oracle {
namespace {

// Rows of a question with its answers, and of an answer with its query; a condition and an order follow.
const std::string kQuestionRows =
    "SELECT m.query, q.template, m.sample, q.kind, q.node, a.uuid, a.answer, a.annotator, a.seconds, a.cost, "
    "a.answered_at, coalesce(a.superseded_by, 0), a.id, "
    "(SELECT coalesce(max(seen), 0) FROM decisions d WHERE d.query = m.query AND d.j = m.sample) "
    "FROM members m JOIN queries q ON q.id = m.query JOIN answers a ON a.query = m.query AND a.j = m.sample ";
const std::string kAnswerRows =
    "SELECT a.id, a.uuid, a.query, a.i, a.j, a.answer, a.annotator, a.seconds, a.cost, a.answered_at, "
    "coalesce(a.superseded_by, 0), q.kind, q.sampler, q.round, q.model_step FROM answers a JOIN queries q ON q.id = "
    "a.query ";
// The columns of a query and one of its members: query_of() reads the query; kMember is the member's, what a reader
// adds follows.
const std::string kQueryColumns = "SELECT q.id, q.kind, q.template, q.node, q.sampler, m.sample";
const std::string kQueryTables = " FROM members m JOIN queries q ON q.id = m.query ";
constexpr int kMember = 5;

Query query_of(const Statement& row) {
  return {row.integer(0), query_kind(row.text(1)), row.integer(2), {}, row.integer(3), row.text(4)};
}

std::vector<Query> ledger_queries(const Sqlite& db, const std::string& rest) {
  Statement rows(db, (kQueryColumns + kQueryTables + rest).c_str());
  std::vector<Query> queries;
  while (rows.next()) {
    if (queries.empty() || queries.back().id != rows.integer(0)) queries.push_back(query_of(rows));
    queries.back().members.push_back(rows.integer(kMember));
  }
  return queries;
}

}  // namespace

// Questions with the answers that were not withdrawn.
std::vector<Question> Ledger::Database::questions(const std::string& rest) const {
  std::vector<Question> questions;
  Statement rows(db, (kQuestionRows + rest).c_str());
  while (rows.next()) {
    if (questions.empty() ||
        std::tie(questions.back().query, questions.back().j) != std::tuple(rows.integer(0), rows.integer(2))) {
      questions.push_back(
          {rows.integer(0), rows.integer(1), rows.integer(2), query_kind(rows.text(3)), rows.integer(4)});
    }
    Question& q = questions.back();
    if (rows.integer(12) > rows.integer(13)) {
      q.cost += rows.real(9);
      q.newest = rows.integer(12);
    }
    if (rows.integer(11) != 0 || rows.text(6) == kWithdrawn) continue;
    q.answers.push_back({q.query, q.i, q.j, verdict(rows.text(6)), rows.text(7), rows.real(8), rows.real(9),
                         rows.text(5), rows.real(10)});
  }
  return questions;
}

std::vector<Question> Ledger::to_decide() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  std::vector<Question> all = db_->questions(
      "WHERE m.fresh = 1 AND (m.open = 0 OR EXISTS (SELECT 1 FROM decisions d WHERE d.query = m.query "
      "AND d.j = m.sample)) ORDER BY m.query, m.position, a.id");
  // Decided before and open again: without any answer the decision is withdrawn; otherwise it holds until there are
  // enough.
  Statement open(db_->db, "SELECT open FROM members WHERE query = ? AND sample = ?");
  std::erase_if(all, [&](const Question& q) {
    return !q.answers.empty() && open.bind(q.query, q.j).next() && open.integer(0) != 0;
  });
  return all;
}

std::vector<Question> Ledger::questions_with_answers() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  return db_->questions("ORDER BY m.query, m.position, a.id");
}

std::vector<Decision> Ledger::decisions() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(db_->db,
                 "SELECT d.query, i, j, q.kind, q.node, answer, effective_step, cost, confidence FROM decisions d "
                 "JOIN queries q ON q.id = d.query ORDER BY effective_step, d.id");
  std::vector<Decision> decisions;
  while (rows.next()) {
    decisions.push_back({rows.integer(0), rows.integer(1), rows.integer(2), query_kind(rows.text(3)), rows.integer(4),
                         verdict(rows.text(5)), rows.integer(6), rows.real(7), rows.real(8)});
  }
  return decisions;
}

std::vector<Ledger::Open> Ledger::open() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(db_->db, (kQueryColumns +
                           ", (SELECT count(*) FROM answers a WHERE a.query = q.id AND a.j = m.sample AND "
                           "a.answer <> 'withdrawn') AS votes" +
                           kQueryTables + "WHERE m.open = 1 ORDER BY q.id, votes, m.position")
                              .c_str());
  std::vector<Open> open;
  while (rows.next()) {
    if (open.empty() || open.back().query.id != rows.integer(0) || open.back().votes != rows.integer(6)) {
      open.push_back({query_of(rows), rows.integer(6)});
    }
    open.back().query.members.push_back(rows.integer(kMember));
  }
  return open;
}

std::vector<Query> Ledger::open_queries() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  return ledger_queries(db_->db, "WHERE m.open = 1 ORDER BY q.id, m.position");
}

std::vector<Ledger::Waiting> Ledger::waiting() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(db_->db,
                 (kQueryColumns + ", m.wanted, a.annotator, a.answer" + kQueryTables +
                  "LEFT JOIN answers a ON a.query = m.query AND a.j = m.sample AND a.superseded_by IS NULL AND "
                  "a.answer <> 'withdrawn' WHERE m.open = 1 ORDER BY q.id, m.position")
                     .c_str());
  std::vector<Waiting> waiting;
  while (rows.next()) {
    if (waiting.empty() || waiting.back().query.id != rows.integer(0)) waiting.push_back({query_of(rows)});
    Waiting& w = waiting.back();
    if (w.query.members.empty() || w.query.members.back() != rows.integer(kMember)) {
      w.query.members.push_back(rows.integer(kMember));
      w.wanted.push_back(rows.integer(6));
      w.answered_by.emplace_back();
    }
    if (rows.text(7).empty()) continue;
    w.answered_by.back().insert(rows.text(7));
    if (rows.text(8) != to_string(Verdict::skip)) --w.wanted.back();
  }
  return waiting;
}

std::vector<Query> Ledger::queries() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  return ledger_queries(db_->db, "ORDER BY q.id, m.position");
}

std::vector<RecordedAnswer> Ledger::Database::rows(Statement& rows) const {
  std::vector<RecordedAnswer> all;
  while (rows.next()) {
    RecordedAnswer r;
    r.id = rows.integer(0);
    r.said = rows.text(5);
    r.answer = {
        rows.integer(2), rows.integer(3), rows.integer(4), r.said == kWithdrawn ? Verdict::skip : verdict(r.said),
        rows.text(6),    rows.real(7),    rows.real(8),    rows.text(1),
        rows.real(9)};
    r.superseded_by = rows.integer(10);
    r.kind = query_kind(rows.text(11));
    r.sampler = rows.text(12);
    r.round = rows.integer(13);
    r.model_step = rows.integer(14);
    all.push_back(std::move(r));
  }
  return all;
}

std::vector<RecordedAnswer> Ledger::last_answers(const std::string& annotator, int64_t most) const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(
      db_->db, (kAnswerRows + "WHERE a.annotator = ? AND a.answer <> 'withdrawn' ORDER BY a.id DESC LIMIT ?").c_str());
  return db_->rows(rows.bind(annotator, most));
}

std::vector<RecordedAnswer> Ledger::all_answers() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(db_->db, (kAnswerRows + "ORDER BY a.id").c_str());
  return db_->rows(rows);
}

std::vector<RecordedAnswer> Ledger::answers_to(int64_t query, int64_t member) const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(db_->db,
                 (kAnswerRows +
                  "WHERE a.query = ? AND a.j = ? AND a.superseded_by IS NULL AND a.answer <> 'withdrawn' ORDER BY a.id")
                     .c_str());
  return db_->rows(rows.bind(query, member));
}

std::optional<QueryKind> Ledger::kind(int64_t query) const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement row(db_->db, "SELECT kind FROM queries WHERE id = ?");
  if (!row.bind(query).next()) return std::nullopt;
  return query_kind(row.text(0));
}

std::vector<double> Ledger::figures(int64_t until) const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(db_->db, "SELECT value FROM figures WHERE step <= ? ORDER BY step");
  rows.bind(until);
  std::vector<double> figures;
  while (rows.next()) figures.push_back(rows.real(0));
  return figures;
}

std::vector<double> Ledger::agreements() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement rows(db_->db,
                 "SELECT avg((m.expected = 1) = (d.answer = 'yes')) FROM decisions d JOIN members m ON m.query = "
                 "d.query AND m.sample = d.j "
                 "JOIN queries q ON q.id = d.query WHERE m.expected <> 0 AND d.answer IN ('yes', 'no') GROUP BY "
                 "q.round ORDER BY q.round");
  std::vector<double> shares;
  while (rows.next()) shares.push_back(rows.real(0));
  return shares;
}

int64_t Ledger::questions() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  return db_->db.number("SELECT count(*) FROM members");
}
int64_t Ledger::open_questions() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  return db_->db.number("SELECT count(*) FROM members WHERE open = 1");
}
int64_t Ledger::rounds() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  return db_->db.number("SELECT coalesce(max(round) + 1, 0) FROM rounds");
}
int64_t Ledger::rounds_asked() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  return db_->db.number("SELECT count(DISTINCT round) FROM queries");
}
double Ledger::cost() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement sum(db_->db, "SELECT coalesce(sum(cost), 0) FROM answers");
  sum.next();
  return sum.real(0);
}
double Ledger::first_asked() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement first(db_->db, "SELECT coalesce(min(asked_at), 0) FROM rounds");
  first.next();
  return first.real(0);
}
std::string Ledger::run_id() const {
  const std::lock_guard<std::mutex> lock(db_->mutex);
  Statement run(db_->db, "SELECT id FROM run");
  return run.next() ? run.text(0) : "";
}

}  // namespace pal::oracle
