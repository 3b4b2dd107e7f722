// query_round: the story of a query: rank 0 asks and records, one broadcast, every rank inserts at the same step.
//
// At the boundary before step s (s a multiple of oracle.every, s > 0), rank 0 chooses the questions of round s / every
// and writes them to the ledger; the simulated labeler answers at once, the answers are synced to the ledger, and one
// broadcast carries both to all ranks. The answers take effect at s + oracle.every, exactly, also in a resumed run.
// A fingerprint of the graph is compared across ranks each round.
#pragma once

#include <cstdint>
#include <functional>
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
  std::vector<Answer> answers;
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
  // Collective. Before step `step`: inserts what takes effect, then asks if a round is due.
  void at_boundary(int64_t step, const EmbedPool& embed);
  // The first step after `step` at which answers may take effect: up to there the graph stays as it is.
  int64_t next_change(int64_t step) const { return (step / every_ + 1) * every_; }

  int64_t questions() const { return questions_; }   // asked up to the current step
  double cost() const { return cost_; }
  int64_t contradictions() const { return contradictions_; }   // answers against what was known: kept in the ledger, not used

 private:
  void ask(int64_t step, const EmbedPool& embed);
  void insert_due(int64_t step);
  void count_asked(int64_t step);
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
  std::vector<Answer> waiting_;             // by effective_step
  int64_t questions_ = 0, used_questions_ = 0;
  double cost_ = 0, used_cost_ = 0;
  int64_t contradictions_ = 0;
};

}  // namespace pal
