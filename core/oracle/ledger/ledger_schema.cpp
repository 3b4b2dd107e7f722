// ledger_schema: the tables of a ledger, and how the tables of older programs become them.
#include "core/oracle/ledger/ledger_internal.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

constexpr int64_t kLedgerApplication = 0x50414C4C;  // "PALL", in the file's header
constexpr int64_t kLedgerSchema = 2;

// answers.i is the template and answers.j the member: the pair must have been asked, and an annotator has at most one
// answer to it that is not withdrawn. members.open: it has fewer answers than `wanted`; fresh: its answers changed
// since its last decision; expected: what the model predicted, as Relation. decisions.seen: the newest answer that it
// used. figures: of validation, by step.
constexpr const char* kLedgerTables = R"sql(
  CREATE TABLE run(id TEXT NOT NULL, opened INTEGER NOT NULL);
  CREATE TABLE figures(step INTEGER PRIMARY KEY, value REAL NOT NULL);
  CREATE TABLE rounds(round INTEGER PRIMARY KEY, model_step INTEGER NOT NULL, asked_at REAL NOT NULL);
  CREATE TABLE queries(
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, template INTEGER NOT NULL, node INTEGER NOT NULL,
    sampler TEXT NOT NULL, round INTEGER NOT NULL, model_step INTEGER NOT NULL, asked_at REAL NOT NULL);
  CREATE TABLE members(
    query INTEGER NOT NULL REFERENCES queries(id), sample INTEGER NOT NULL, position INTEGER NOT NULL,
    wanted INTEGER NOT NULL, open INTEGER NOT NULL, fresh INTEGER NOT NULL, expected INTEGER NOT NULL,
    PRIMARY KEY(query, sample)) WITHOUT ROWID;
  CREATE TABLE answers(
    id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, query INTEGER NOT NULL, i INTEGER NOT NULL, j INTEGER NOT NULL,
    answer TEXT NOT NULL CHECK(answer IN ('yes', 'no', 'unsure', 'skip', 'broken', 'withdrawn')), cost REAL NOT NULL,
    annotator TEXT NOT NULL, answered_at REAL NOT NULL, seconds REAL NOT NULL,
    superseded_by INTEGER REFERENCES answers(id),
    FOREIGN KEY(query, j) REFERENCES members(query, sample));
  CREATE TABLE decisions(
    id INTEGER PRIMARY KEY, query INTEGER NOT NULL, i INTEGER NOT NULL, j INTEGER NOT NULL,
    answer TEXT NOT NULL CHECK(answer IN ('yes', 'no', 'unsure', 'skip', 'broken')), cost REAL NOT NULL,
    confidence REAL NOT NULL, effective_step INTEGER NOT NULL, round INTEGER NOT NULL, decided_at REAL NOT NULL,
    seen INTEGER NOT NULL, FOREIGN KEY(query, j) REFERENCES members(query, sample));
  CREATE UNIQUE INDEX one_answer ON answers(query, j, annotator) WHERE superseded_by IS NULL AND answer <> 'withdrawn';
  CREATE INDEX answers_by ON answers(annotator, id);
  CREATE INDEX open_members ON members(open) WHERE open = 1;
  CREATE INDEX fresh_members ON members(fresh) WHERE fresh = 1;
  CREATE INDEX decided_questions ON decisions(query, j);
  CREATE INDEX members_by_sample ON members(sample);
  CREATE INDEX answers_to ON answers(query, j);
  PRAGMA application_id = 1346456652;
  PRAGMA user_version = 2;
)sql";
static_assert(kLedgerApplication == 1346456652 && kLedgerSchema == 2, "kLedgerTables writes the same numbers");

// Schema 1 had one answer to a question, with the step at which it took effect.
constexpr const char* kAsideFromSchema1 = R"sql(
  ALTER TABLE run RENAME TO run_1;
  ALTER TABLE queries RENAME TO queries_1;
  ALTER TABLE members RENAME TO members_1;
  ALTER TABLE answers RENAME TO answers_1;
  DROP INDEX one_answer;
)sql";
constexpr const char* kCopyFromSchema1 = R"sql(
  INSERT INTO run SELECT id, opened FROM run_1;
  INSERT INTO queries SELECT id, kind, template, -1, sampler, round, model_step, asked_at FROM queries_1;
  INSERT INTO rounds SELECT round, max(model_step), min(asked_at) FROM queries_1 GROUP BY round;
  INSERT INTO members SELECT query, sample, position, 1, NOT EXISTS (
      SELECT 1 FROM answers_1 a WHERE a.query = m.query AND a.j = m.sample AND a.superseded_by IS NULL),
      0, 0 FROM members_1 m;
  INSERT INTO answers SELECT id, 'schema-1-' || id, query, i, j,
      CASE answer WHEN 'same' THEN 'yes' WHEN 'different' THEN 'no' ELSE 'unsure' END,
      cost, annotator, answered_at, 0, superseded_by FROM answers_1 ORDER BY id;
  INSERT INTO decisions SELECT id, query, i, j,
      CASE answer WHEN 'same' THEN 'yes' WHEN 'different' THEN 'no' ELSE 'unsure' END,
      cost, 1, effective_step, (SELECT round FROM queries_1 q WHERE q.id = query), answered_at, id
    FROM answers_1 WHERE superseded_by IS NULL ORDER BY id;
  DROP TABLE answers_1;
  DROP TABLE members_1;
  DROP TABLE queries_1;
  DROP TABLE run_1;
)sql";

// A ledger has tables and indices only: what else is in the file would answer for the tables, or act when they change.
void check_only_tables(const Sqlite& db) {
  Statement other(db,
                  "SELECT type || ' ' || name FROM sqlite_schema WHERE type NOT IN ('table', 'index') "
                  "OR sql LIKE 'CREATE VIRTUAL%'");
  if (!other.next()) return;
  PAL_DATA_CHECK(false, "ledger " + db.path() + " holds what no PAL writes", other.text(0),
                 "do not trust the file: move it away, or take a copy from its source");
}

}  // namespace

void prepare_ledger(const Sqlite& db, const std::string& run_id) {
  if (db.number("SELECT count(*) FROM sqlite_schema") == 0) {
    PAL_DATA_CHECK(!run_id.empty(), "the ledger is empty", db.path(), "nothing was asked in this run yet");
    db.run(kLedgerTables);
    Statement(db, "INSERT INTO run VALUES (?, 1)").bind(run_id).next();
    check_answers(db);
    return;
  }
  PAL_DATA_CHECK(db.number("PRAGMA application_id") == kLedgerApplication, "the database is not a PAL ledger",
                 db.path(), "move it away or choose another run folder");
  check_only_tables(db);
  check_ledger_pages(db);
  const int64_t schema = db.number("PRAGMA user_version");
  PAL_DATA_CHECK(
      schema >= 1 && schema <= kLedgerSchema, "ledger " + db.path() + " of schema", schema,
      "this program knows schemas 1 to " + std::to_string(kLedgerSchema) + ": use the newer PAL that wrote it");
  {
    Statement run(db, "SELECT id FROM run");
    const std::string found = run.next() ? run.text(0) : "";
    PAL_DATA_CHECK(run_id.empty() || found == run_id, "ledger " + db.path() + " of another run", found,
                   "this run is " + run_id + ": choose another run folder");
  }
  if (schema == 1) {
    db.run(kAsideFromSchema1);
    db.run(kLedgerTables);
    db.run(kCopyFromSchema1);
  }
  db.run(
      "CREATE INDEX IF NOT EXISTS answers_to ON answers(query, j)");  // the first ledgers of schema 2 lack this index
  check_answers(db);
  db.run("UPDATE run SET opened = opened + 1");  // finds a folder without a journal now, not at the first answer
}

}  // namespace pal::oracle
