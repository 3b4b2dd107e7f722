// query_round: the story of a query: rank 0 asks and records, one broadcast, every rank inserts at the same step.
//
// At the boundary before step s (s a multiple of oracle.every, s > 0) the ranks embed the pool of round s / every, each its
// slice. Then steps go on, while a thread of rank 0 takes in what people handed in, chooses the questions, writes them to the
// ledger, has them answered or hands them out, decides, and syncs the decisions to the ledger. A sampler that looks at embeddings
// chooses on all ranks, each in a thread beside its steps and each for its own rows of the pool (core/oracle/samplers/pool_rows.h). At the boundary before step
// s + oracle.every one broadcast carries the decisions to all ranks, and they take effect, exactly there, also in a
// resumed run. Answers that come later than their round are decided in the round that finds them: nobody waits for people.
// A fingerprint of the graph is compared across ranks each round.
//
// A decision against what is known is left out, and with oracle.repeats its question, and those of the least sure links
// of the chain behind what is known, are put to further annotators. A decision that changes (outvoted, or an answer was
// taken back) replaces the one before, and what was left out is tried again.
//
// Thread: the graph changes at those boundaries alone, after the thread's work was collected: it reads the store as it
//   was when the round began. The ledger belongs to the thread until then.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/comm.h"
#include "core/eval/embed.h"
#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/ledger.h"
#include "core/oracle/oracle.h"
#include "core/oracle/oracle_spec.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/stop_rules.h"
#include "dist/comm/world.h"
#include "dist/train/round_message.h"

namespace pal::dist {

// What may be asked about, and what a labeler may know of it.
struct QuestionContext {
  std::vector<int64_t> samples;  // trained on
  std::vector<int64_t> labels;   // (N)
  std::vector<int64_t> parents = {};
  std::function<std::string(int64_t)> name = {};
  std::function<at::Tensor(const std::vector<int64_t>& samples)> inputs =
      {};  // for samplers that look at the samples themselves
  std::function<void(int64_t step)> before_round =
      {};  // on rank 0's thread, before it prepares the round asked there: injected faults
};
struct LedgerLocation {
  std::string path, run_id;  // questions.jsonl and inbox/ lie beside it
};
// What a run's ledger belongs to: the questions depend on these, not on ranks or threads.
std::string ledger_run(const oracle::OracleSpec& spec, uint64_t data_fingerprint);

// Of the newest round, on this rank: steps were held up while its slice of the pool was embedded, and while the round before was
// not ready; the choice went on beside them.
struct RoundTimes {
  double embed_ms = 0, wait_ms = 0, choose_ms = 0;
};

class QueryRounds {
 public:
  // Collective. Opens the ledger on rank 0 and replays it: decisions in effect before `step` enter the store. `store` and
  // `world` must outlive this.
  QueryRounds(const oracle::OracleSpec& spec, World& world, graph::GraphStore& store, const QuestionContext& of,
              const LedgerLocation& ledger, int64_t step);
  ~QueryRounds();

  // Called on all ranks when the sampler needs it: embeds this rank's slice of the samples, (slice, D).
  using EmbedPool = std::function<at::Tensor(const std::vector<int64_t>& samples, eval::SampleSlice slice)>;
  // Collective. Before step `step`: collects the last round and inserts what takes effect, then asks if a round is due.
  void at_boundary(int64_t step, const EmbedPool& embed);
  // The first step after `step` at which answers may take effect: up to there the graph stays as it is.
  int64_t next_change(int64_t step) const { return (step / every_ + 1) * every_; }
  // A figure of validation seen at this step, for oracle.plateau. Rank 0's counts.
  void saw_figure(int64_t step, double value);

  // What a checkpoint keeps of the ledger: the questions whose answers are in effect. Waits until the round under way, if
  // any, is in the ledger with its answers: a run that goes on from there asks no round again, so it must be there.
  int64_t ledger_position() const;

  int64_t questions() const { return questions_; }  // whose answers are in effect
  double cost() const { return cost_; }
  int64_t contradictions() const {
    return contradictions_;
  }  // decisions against what was known: kept in the ledger, not used
  // Sentences of the last boundary: contradictions with the chain behind the first, answers that were refused, why nothing is
  // asked any more or now (once each); "" when there were none. Rank 0's are complete.
  const std::string& warning() const { return warning_; }
  // Questions are out, and oracle.wait=exit: the run is to end until they are answered; the same on every rank.
  bool leaves() const { return leaves_; }
  int64_t open_questions() const { return open_; }
  const RoundTimes& times() const { return times_; }

 private:
  void start_round(int64_t step, const EmbedPool& embed);
  RoundMessage prepare(const oracle::Pool& pool, oracle::Round round, int64_t step);
  std::vector<oracle::Query> choose(const oracle::Pool& pool, oracle::Round round);
  at::Tensor inputs_of(const oracle::Pool& pool, eval::SampleSlice slice) const;
  void take_in();
  void answer_open();
  void decide_open(int64_t effective_step, int64_t round);
  oracle::StopReason look_for_stop(int64_t step) const;
  void collect();
  void insert_due(int64_t step);
  void ask_again(const std::vector<oracle::Contradiction>& against);
  void say(const std::string& sentence);
  void say_once(const std::string& kind, const std::string& sentence);

  struct Known {
    oracle::Decision decision;
    bool inserted = false;
  };
  using Pair = std::pair<int64_t, int64_t>;  // smaller sample first
  static Pair pair_of(const oracle::Decision& d) { return std::minmax(d.i, d.j); }

  comm::Comm& comm_;    // of the steps' thread
  comm::Comm& rounds_;  // of the threads that choose
  graph::GraphStore& store_;
  const QuestionContext of_;
  uint64_t seed_;
  int64_t every_, per_round_, pool_, votes_, repeats_;
  oracle::StopLimits limits_;
  oracle::ConsensusKind consensus_;
  std::unique_ptr<oracle::QuerySampler> sampler_;
  // Rank 0 only.
  std::unique_ptr<oracle::Labeler> labeler_;
  std::unique_ptr<oracle::Ledger> ledger_;
  std::unique_ptr<oracle::Inbox> inbox_;
  std::vector<oracle::Decision> decided_now_;  // of the thread
  std::vector<std::string> refused_;           // of the thread: sentences
  std::vector<Pair> again_;                    // part of a contradiction, for the next round
  RoundTimes times_;
  double chose_ms_ = 0;  // of the thread
  // The same on every rank that chooses.
  oracle::NoQuestion no_question_ = oracle::NoQuestion::none;  // of the thread
  // The same on every rank.
  int64_t recorded_rounds_ = 0;                         // rounds the ledger already holds: not asked again
  std::vector<oracle::Decision> waiting_;               // by effective_step
  std::map<std::pair<int64_t, int64_t>, Known> known_;  // (query, member) → its decision in effect
  std::vector<oracle::Decision> left_out_;              // against what is known
  bool under_way_ = false;
  bool later_ = false;  // people answer
  bool exits_ = false;  // they do, and oracle.wait=exit
  bool leaves_ = false;
  int64_t asked_ = 0, open_ = 0;
  oracle::StopReason stop_ = oracle::StopReason::none;
  int64_t questions_ = 0;
  double cost_ = 0;
  int64_t contradictions_ = 0;
  std::string warning_;
  std::set<std::string> said_;  // kinds of sentences that are said once
  // The thread's work; on other ranks than 0 the choice alone, and only if they hold rows of the pool. The last member: its
  // destructor waits for the thread, which uses the others.
  std::future<RoundMessage> preparing_;
};

}  // namespace pal::dist
