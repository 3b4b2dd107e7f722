// round_leader: rank 0's part of a query round: the ledger, the inbox and the labeler.
//
// Thread: rank 0's worker thread calls begin() and finish(). The training thread calls the constructor and start()
//   before the first round, and record_figure() at any time (the ledger's calls take turns).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/ledger.h"
#include "core/oracle/oracle.h"
#include "core/oracle/round/round.h"
#include "dist/train/round_message.h"

namespace pal::config {
class Config;
}

namespace pal::dist {

// The samples that may be asked about, and what the labeler and the sampler may know of them.
struct QuestionContext {
  std::vector<int64_t> samples;  // trained on
  std::vector<int64_t> labels;   // (N)
  std::vector<int64_t> parents = {};
  std::function<std::string(int64_t)> name = {};
  // (samples, values): for samplers that need the samples themselves.
  std::function<at::Tensor(const std::vector<int64_t>& samples)> inputs = {};
  // Injected faults: rank 0's worker thread calls it before it prepares the round of that step.
  std::function<void(int64_t step)> before_round = {};
};
struct LedgerLocation {
  std::string path, run_id;  // questions.jsonl and inbox/ lie beside it
};

class RoundLeader {
 public:
  // Opens the ledger. `store` and `context` must outlive this.
  RoundLeader(const oracle::OracleSpec& settings, const QuestionContext& context, const LedgerLocation& location,
              const graph::GraphStore& store);

  // Records and decides the answers that arrived since the last run ended: they take effect at the first round after
  // `step` that the ledger does not hold yet. So does a question whose run was killed before its answer was recorded.
  RoundStart start(int64_t step);

  // Records the answers that arrived, and adds the queries that must not be asked again to the round.
  void begin(oracle::Round& round, int64_t step);
  // Records the queries, has them answered or publishes them, and decides. `contradicted`: pairs whose questions need
  // one more answer. Every decision is on disk when it returns.
  RoundMessage finish(std::vector<oracle::Query>& queries, const oracle::Round& round, const std::string& sampler,
                      const std::vector<SamplePair>& contradicted, int64_t step);
  // Sentences about answers that were refused since the last call.
  std::vector<std::string> take_refused() { return std::exchange(refused_, {}); }

  void record_figure(int64_t step, double value);

 private:
  RoundMessage message(int64_t step, std::vector<oracle::Decision> decisions) const;

  const oracle::OracleSpec settings_;
  const QuestionContext& context_;
  const graph::GraphStore& store_;
  std::unique_ptr<oracle::Labeler> labeler_;
  oracle::Ledger ledger_;
  oracle::Inbox inbox_;
  std::vector<std::string> refused_;
};

}  // namespace pal::dist
