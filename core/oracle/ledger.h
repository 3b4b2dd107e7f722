// ledger: every question and every answer of a run, in SQLite; what is in it is on disk, and nothing is asked twice.
//
// One process writes: the database is locked exclusively from open to close (shared file systems break anything else);
// a second writer is refused. Rollback journal with synchronous=EXTRA, so that record_* returns only once the rows
// survive a power cut; a killed process loses at most what record_* had not returned from, never half of a call.
// The tables are open to a reader once the run has ended: `sqlite3 ledger.sqlite 'select * from answers'`.
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/oracle/question.h"

namespace pal {

// Who asked, and when in the life of the model.
struct AskedBy {
  std::string sampler;
  int64_t round = 0;
  int64_t model_step = 0;
};

class Ledger {
 public:
  // Opens or creates. Throws Error (data) with a sentence when it is locked, read-only, no ledger, of another run, or of
  // a newer schema.
  Ledger(const std::string& path, const std::string& run_id);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Gives each query its id (in order, from 1) and stores all or none. Synced when it returns.
  void record_queries(std::vector<Query>& queries, const AskedBy& by);
  // Stores all or none, in this order. Synced when it returns: only then may an edge be used. An answer to a question
  // that was never asked, or that has an answer already, throws Error (data).
  void record_answers(const std::vector<Decision>& answers, const std::string& annotator);

  // Replay: the answers that stand (not superseded), by (effective_step, order of arrival).
  std::vector<Decision> answers() const;
  // Asked and not answered: what a resumed run puts to the labeler instead of asking anew. Members without an answer.
  std::vector<Query> open_queries() const;

  int64_t questions() const;   // members of all queries so far
  int64_t rounds() const;      // one past the highest round recorded
  double cost() const;         // of all answers, superseded ones too: they were paid for

 private:
  struct Database;
  std::unique_ptr<Database> db_;
};

}  // namespace pal
