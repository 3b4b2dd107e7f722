// query_round: the story of a query: rank 0 asks and records, one broadcast, every rank inserts at the same step.
//
// At the boundary before step s (s a multiple of oracle.every, s > 0) the ranks embed the pool of round s / every. Then
// steps go on, while a thread of rank 0 chooses the questions, writes them to the ledger, has them answered and syncs the
// answers to the ledger. At the boundary before step s + oracle.every one broadcast carries them to all ranks, and they
// take effect, exactly there, also in a resumed run. A fingerprint of the graph is compared across ranks each round.
//
// Thread: the graph changes at those boundaries alone, after the thread's work was collected: it reads the store as it
//   was when the round began. The ledger belongs to the thread until then.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/comm.h"
#include "core/oracle/ledger.h"
#include "core/oracle/oracle.h"

namespace pal {

class Config;

// What one broadcast carries.
struct RoundMessage {
  std::vector<Query> queries;
  std::vector<Decision> answers;
};
// Fixed size for rounds of at most `questions` questions, so that one broadcast is enough.
at::Tensor encode_round(const RoundMessage& message, int64_t questions);
RoundMessage decode_round(const at::Tensor& buffer);

// What may be asked about, and what the simulated labeler knows.
struct AskedOf {
  std::vector<int64_t> samples;   // trained on
  std::vector<int64_t> labels;    // (N)
};
struct LedgerOf {
  std::string path, run_id;
};

class QueryRounds {
 public:
  // Collective. Opens the ledger on rank 0 and replays it: answers in effect before `step` enter the store. `store` and
  // `comm` must outlive this.
  QueryRounds(const Config& config, Comm& comm, GraphStore& store, const AskedOf& of, const LedgerOf& ledger, int64_t step);

  // Collective. Embeds these samples on all ranks; called only when the sampler needs it.
  using EmbedPool = std::function<at::Tensor(const std::vector<int64_t>& samples)>;
  // Collective. Before step `step`: collects the last round and inserts what takes effect, then asks if a round is due.
  void at_boundary(int64_t step, const EmbedPool& embed);
  // The first step after `step` at which answers may take effect: up to there the graph stays as it is.
  int64_t next_change(int64_t step) const { return (step / every_ + 1) * every_; }

  // Waits until the round under way, if any, is in the ledger with its answers.
  void settle();

  int64_t questions() const { return questions_; }   // whose answers are in effect
  double cost() const { return cost_; }
  int64_t contradictions() const { return contradictions_; }   // answers against what was known: kept in the ledger, not used
  // A sentence about those of the last boundary, with the chain of answers behind the first; "" when there were none.
  const std::string& warning() const { return warning_; }

 private:
  void ask(int64_t step, const EmbedPool& embed);
  RoundMessage prepare(const Pool& pool, const Round& round, int64_t step);
  void collect();
  void insert_due(int64_t step);
  void compare_graphs();

  Comm& comm_;
  GraphStore& store_;
  const std::vector<int64_t> trained_;
  uint64_t seed_;
  int64_t every_, per_round_, pool_, budget_;
  std::unique_ptr<QuerySampler> sampler_;
  std::unique_ptr<Labeler> labeler_;
  std::unique_ptr<Ledger> ledger_;          // rank 0 only
  int64_t recorded_rounds_ = 0;             // rounds the ledger already holds: not asked again
  std::vector<Decision> waiting_;             // by effective_step
  bool asked_ = false;                      // a round is under way, on all ranks
  std::future<RoundMessage> preparing_;     // rank 0 only
  int64_t questions_ = 0;
  double cost_ = 0;
  int64_t contradictions_ = 0;
  std::string warning_;
};

}  // namespace pal
