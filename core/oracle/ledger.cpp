#include "core/oracle/ledger.h"

#include <sqlite3.h>

#include <chrono>

#include "core/oracle/sqlite.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

constexpr int64_t kApplication = 0x50414C4C;   // "PALL", in the file's header
constexpr int64_t kSchema = 1;

// answers.i is the template and answers.j the member: the pair must have been asked, and has one answer that stands.
constexpr const char* kTables = R"sql(
  CREATE TABLE run(id TEXT NOT NULL, opened INTEGER NOT NULL);
  CREATE TABLE queries(
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, template INTEGER NOT NULL,
    sampler TEXT NOT NULL, round INTEGER NOT NULL, model_step INTEGER NOT NULL, asked_at REAL NOT NULL);
  CREATE TABLE members(
    query INTEGER NOT NULL REFERENCES queries(id), sample INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY(query, sample)) WITHOUT ROWID;
  CREATE TABLE answers(
    id INTEGER PRIMARY KEY, query INTEGER NOT NULL, i INTEGER NOT NULL, j INTEGER NOT NULL,
    answer TEXT NOT NULL CHECK(answer IN ('same', 'different', 'unsure')), cost REAL NOT NULL,
    annotator TEXT NOT NULL, answered_at REAL NOT NULL, effective_step INTEGER NOT NULL,
    superseded_by INTEGER REFERENCES answers(id),
    FOREIGN KEY(query, j) REFERENCES members(query, sample));
  CREATE UNIQUE INDEX one_answer ON answers(query, j) WHERE superseded_by IS NULL;
  PRAGMA application_id = 1346456652;
  PRAGMA user_version = 1;
)sql";
static_assert(kApplication == 1346456652 && kSchema == 1, "kTables writes the same numbers");

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string answer_name(Relation relation) {
  return relation == Relation::same ? "same" : relation == Relation::different ? "different" : "unsure";
}
Verdict answer_verdict(const std::string& name) {
  return name == "same" ? Verdict::yes : name == "different" ? Verdict::no : Verdict::unsure;
}

// A new file gets its tables; an old one must be ours, of this run and of a schema we know.
void prepare(const Sqlite& db, const std::string& run_id) {
  if (db.number("SELECT count(*) FROM sqlite_schema") == 0) {
    db.run(kTables);
    Statement(db, "INSERT INTO run VALUES (?, 1)").bind(run_id).next();
    return;
  }
  PAL_DATA_CHECK(db.number("PRAGMA application_id") == kApplication, "database that is no ledger of PAL", db.path(),
                 "move it away or choose another run folder");
  const int64_t schema = db.number("PRAGMA user_version");
  PAL_DATA_CHECK(schema <= kSchema, "ledger " + db.path() + " of schema", schema,
                 "this program knows schemas up to " + std::to_string(kSchema) + ": use the newer PAL that wrote it");
  Statement run(db, "SELECT id FROM run");
  const std::string found = run.next() ? run.text(0) : "";
  PAL_DATA_CHECK(found == run_id, "ledger " + db.path() + " of another run", found, "this run is " + run_id + ": choose another run folder");
  db.run("UPDATE run SET opened = opened + 1");   // a folder that takes no journal is found now, not at the first answer
}

}  // namespace

struct Ledger::Database {
  explicit Database(const std::string& path) : db(path) {}
  Sqlite db;
};

Ledger::Ledger(const std::string& path, const std::string& run_id) : db_(std::make_unique<Database>(path)) {
  const Sqlite& db = db_->db;
  // Exclusive: the lock taken by the first transaction is kept until close. EXTRA: the deletion of the journal, which
  // is the commit, is synced too.
  db.run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=EXTRA; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF");
  db.run("BEGIN EXCLUSIVE; COMMIT; PRAGMA journal_mode=DELETE");
  Transaction transaction(db);
  prepare(db, run_id);
  transaction.commit();
}

Ledger::~Ledger() = default;

void Ledger::record_queries(std::vector<Query>& queries, const AskedBy& by) {
  if (queries.empty()) return;
  const Sqlite& db = db_->db;
  const double time = now();
  Transaction transaction(db);
  int64_t id = db.number("SELECT coalesce(max(id), 0) FROM queries");
  Statement query(db, "INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?, ?)");
  Statement member(db, "INSERT INTO members(query, sample, position) VALUES (?, ?, ?)");
  std::vector<Query> numbered = queries;   // the caller's ids change only when all is on disk
  for (Query& q : numbered) {
    PAL_ASSERT(!q.members.empty(), "a query has a member");
    q.id = ++id;
    query.bind(q.id, to_string(q.kind), q.template_sample, by.sampler, by.round, by.model_step, time).next();
    for (size_t k = 0; k < q.members.size(); ++k) member.bind(q.id, q.members[k], static_cast<int64_t>(k)).next();
  }
  transaction.commit();
  queries = std::move(numbered);
}

void Ledger::record_answers(const std::vector<Decision>& answers, const std::string& annotator) {
  if (answers.empty()) return;
  const Sqlite& db = db_->db;
  const double time = now();
  Transaction transaction(db);
  Statement asked(db, "SELECT 1 FROM members JOIN queries ON id = query WHERE query = ? AND template = ? AND sample = ?");
  Statement insert(db,
                   "INSERT INTO answers(query, i, j, answer, cost, annotator, answered_at, effective_step) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (const Decision& a : answers) {
    const std::string which = std::to_string(a.query) + " about samples " + std::to_string(a.i) + " and " + std::to_string(a.j);
    PAL_DATA_CHECK(asked.bind(a.query, a.i, a.j).next(), "answer to a question that was not asked", "query " + which,
                   "answer the queries of this ledger: " + db.path());
    const int code = insert.bind(a.query, a.i, a.j, answer_name(a.relation()), a.cost, annotator, time, a.effective_step).code();
    PAL_DATA_CHECK(code != SQLITE_CONSTRAINT_UNIQUE, "second answer to query", which, "take the first one back before another is given");
    db.check(code);
  }
  transaction.commit();
}

std::vector<Decision> Ledger::answers() const {
  Statement rows(db_->db,
                 "SELECT query, i, j, answer, effective_step, cost FROM answers WHERE superseded_by IS NULL "
                 "ORDER BY effective_step, id");
  std::vector<Decision> answers;
  while (rows.next()) {
    answers.push_back({rows.integer(0), rows.integer(1), rows.integer(2), QueryKind::pair, kNoNode, answer_verdict(rows.text(3)), rows.integer(4), rows.real(5)});
  }
  return answers;
}

std::vector<Query> Ledger::open_queries() const {
  Statement rows(db_->db,
                 "SELECT q.id, q.kind, q.template, m.sample FROM queries q JOIN members m ON m.query = q.id "
                 "WHERE NOT EXISTS (SELECT 1 FROM answers a WHERE a.query = q.id AND a.j = m.sample AND a.superseded_by IS NULL) "
                 "ORDER BY q.id, m.position");
  std::vector<Query> queries;
  while (rows.next()) {
    if (queries.empty() || queries.back().id != rows.integer(0)) {
      queries.push_back({rows.integer(0), query_kind(rows.text(1)), rows.integer(2), {}});
    }
    queries.back().members.push_back(rows.integer(3));
  }
  return queries;
}

int64_t Ledger::questions() const { return db_->db.number("SELECT count(*) FROM members"); }
int64_t Ledger::rounds() const { return db_->db.number("SELECT coalesce(max(round) + 1, 0) FROM queries"); }

double Ledger::cost() const {
  Statement sum(db_->db, "SELECT coalesce(sum(cost), 0) FROM answers");
  sum.next();
  return sum.real(0);
}

}  // namespace pal
