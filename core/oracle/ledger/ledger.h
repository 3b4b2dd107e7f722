// ledger: every question, answer and decision of a run, in SQLite.
//
// One process writes: the database is locked exclusively from open to close (shared file systems break anything else),
// and a lease beside it (ledger.sqlite.writer) names the process. Others submit answers through the inbox (inbox.h).
// Rollback journal with synchronous=EXTRA, so that record_* returns only once the rows survive a power cut; a killed
// process loses at most what record_* had not returned from, never half of a call.
// Nothing is deleted: a withdrawn answer is superseded by a row with the annotator and the time.
// The tables can be read once the run has ended: `sqlite3 ledger.sqlite 'select * from answers'`.
// Thread: any; calls take turns.
//
// The life of a question: record_queries records it; it is `open` until it has as many answers as are wanted (skip
// counts as none); then to_decide() returns it, and record_decisions records the verdict and the step at which it takes
// effect. A withdrawn or a further answer opens the question or decides it again: its newest decision counts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/oracle/ledger/question.h"

namespace pal::oracle {

// The sampler of a round, and the training step of the model that it used.
struct RoundRecord {
  std::string sampler;
  int64_t round = 0;
  int64_t model_step = 0;
  int64_t votes = 1;  // answers wanted for each question
  // Pairs whose question needs one more answer (they are part of a contradiction), while it needs fewer than `most`.
  std::vector<std::pair<int64_t, int64_t>> again = {};
  int64_t most = 1;
};

// One question with the answers that were not withdrawn.
struct Question {
  int64_t query = 0, i = 0, j = 0;
  QueryKind kind = QueryKind::captcha;
  int64_t node = kNoNode;
  std::vector<Answer> answers = {};
  double cost = 0;     // of all answers that the last decision did not use
  int64_t newest = 0;  // row of the newest one of these
};

// An answer as the ledger keeps it.
struct RecordedAnswer {
  int64_t id = 0;
  Answer answer;
  std::string said;           // the verdict's name, or "withdrawn": the row that withdraws an answer
  int64_t superseded_by = 0;  // row that withdrew it; 0: none
  QueryKind kind = QueryKind::captcha;
  std::string sampler = {};
  int64_t round = 0, model_step = 0;
};

// What became of entries that were submitted one by one.
struct LedgerIntake {
  int64_t recorded = 0, withdrawn = 0;
  int64_t known = 0;                      // recorded before (the same uuid)
  std::vector<std::string> refused = {};  // a sentence each; "" for those that were not
};

// To open the ledger of any run (pal answers).
inline const std::string kAnyRun;

class Ledger {
 public:
  // Opens or creates; one of an older schema is brought to this one. Throws Error (data) with a sentence when it is
  // locked, read-only, no ledger, of another run, or of a newer schema.
  Ledger(const std::string& path, const std::string& run_id);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Records a round: gives each query its id (in order, from 1), stores all or none, and asks again what is to be asked
  // again. Synced when it returns. A round without a question is recorded too.
  void record_queries(std::vector<Query>& queries, const RoundRecord& by);

  // Stores all or none, in this order. Synced when it returns. Throws Error (data) on an answer to a question that was
  // never asked, on a second one of the same annotator, and on one from the future. An answer that was
  // recorded before is skipped. Returns how many are new.
  int64_t record_answers(const std::vector<Answer>& answers);
  // The same for entries that people submit, each by itself: a wrong entry does not affect the others.
  LedgerIntake take(const std::vector<Entry>& entries);

  // Questions whose answers changed since the last decision about them, and that have enough; one whose
  // answers were all withdrawn has none.
  std::vector<Question> to_decide() const;
  std::vector<Question> questions_with_answers() const;  // all of them, for a consensus that estimates the annotators
  // Stores all or none. `questions`: as given by to_decide, one for each decision. Synced when it returns: only then
  // may an edge be used.
  void record_decisions(const std::vector<Decision>& decisions, const std::vector<Question>& questions, int64_t round);

  // Replay: all decisions, by (effective_step, order of arrival).
  std::vector<Decision> decisions() const;
  // Asked, with fewer answers than wanted: a resumed run puts these to the labeler. Only members that are open; all
  // members of one Open have the same number of answers so far, `votes`, withdrawn ones included.
  struct Open {
    Query query;
    int64_t votes = 0;
  };
  std::vector<Open> open() const;
  std::vector<Query> open_queries() const;  // the same as queries, for publishing
  std::vector<Query> queries() const;       // all that were ever asked

  // What people may be asked: open members only; for each, how many answers are still wanted, and which people have
  // answered or skipped it.
  struct Waiting {
    Query query;
    std::vector<int64_t> wanted = {};
    std::vector<std::set<std::string>> answered_by = {};
  };
  std::vector<Waiting> waiting() const;
  // Copies questions of another ledger, under their own ids; those that are there already stay as they are. Synced when
  // it returns. Returns how many are new.
  int64_t adopt(const std::vector<Query>& queries, int64_t votes);

  // For people: the newest answers of an annotator, newest first; all rows of the ledger, oldest first.
  std::vector<RecordedAnswer> last_answers(const std::string& annotator, int64_t most) const;
  std::vector<RecordedAnswer> all_answers() const;
  std::vector<RecordedAnswer> answers_to(int64_t query, int64_t member) const;  // not withdrawn
  std::optional<QueryKind> kind(int64_t query) const;                           // empty: it was never asked

  // The validation figure of a step, and all of them up to a step: for oracle.plateau, also after a restart.
  void record_figure(int64_t step, double value);
  std::vector<double> figures(int64_t until) const;
  // Of each round with predictions, in order: the share of answers that were predicted.
  std::vector<double> agreements() const;

  int64_t questions() const;  // members of all queries so far
  int64_t open_questions() const;
  int64_t rounds() const;        // one past the highest round recorded
  int64_t rounds_asked() const;  // rounds with a question
  double cost() const;           // of all answers, withdrawn ones too: they were paid for
  double first_asked() const;    // seconds since 1970; 0: never
  std::string run_id() const;

 private:
  struct Database;
  std::unique_ptr<Database> db_;
};

}  // namespace pal::oracle
