// query_round: query rounds during training. Rank 0 asks and records, one broadcast carries the decisions, and every
// rank inserts them into its graph before the same step.
//
// Before step s (s > 0 a multiple of oracle.every) every rank embeds its slice of the pool of round s / every. Training
// continues. Meanwhile rank 0's worker thread records the answers that people submitted, chooses the questions, writes
// them to the ledger, has them answered or publishes them, decides, and syncs the decisions to disk (round_leader.h). A
// sampler that needs embeddings chooses on all ranks, each in a worker thread and for its own rows of the pool
// (core/oracle/samplers/pool_rows.h). Before step s + oracle.every one broadcast carries the decisions to all ranks,
// and they take effect exactly there (round_member.h), also in a resumed run. Answers that arrive later are decided in
// the round that finds them: training never waits for people. Each round compares a fingerprint of the graph across
// ranks.
//
// Thread: the training thread calls every function of QueryRounds and is the only one that changes the graph, after it
//   has collected the worker thread's result. The worker thread reads the graph as it was when the round started.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/comm/comm.h"
#include "core/eval/embed.h"
#include "core/oracle/oracle.h"
#include "core/oracle/oracle_spec.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/round/round.h"
#include "dist/comm/world.h"
#include "dist/train/round_leader.h"
#include "dist/train/round_member.h"
#include "dist/train/round_message.h"

namespace pal::dist {

// Of the newest round, on this rank. embed_ms and wait_ms held up training: this rank embedded its slice of the pool,
// and waited for the previous round. choose_ms ran beside training.
struct RoundTimes {
  double embed_ms = 0, wait_ms = 0, choose_ms = 0;
};

class QueryRounds {
 public:
  // Collective. Opens the ledger on rank 0 and replays it: decisions in effect before `step` enter the store. `store`
  // and `world` must outlive this.
  QueryRounds(const oracle::OracleSpec& spec, World& world, graph::GraphStore& store, const QuestionContext& context,
              const LedgerLocation& ledger, int64_t step);
  ~QueryRounds();

  // Called on all ranks when the sampler needs it: embeds this rank's slice of the samples, (slice, D).
  using EmbedPool = std::function<at::Tensor(const std::vector<int64_t>& samples, eval::SampleSlice slice)>;
  // Collective. Before step `step`: collects the last round and inserts what takes effect, then asks if a round is due.
  void at_boundary(int64_t step, const EmbedPool& embed);
  // The first step after `step` at which answers may take effect: the graph does not change before it.
  int64_t next_change(int64_t step) const { return (step / settings_.every + 1) * settings_.every; }
  // A validation figure of this step, for oracle.plateau. Only rank 0's figure is used.
  void saw_figure(int64_t step, double value);

  // What a checkpoint keeps of the ledger: the questions whose answers are in effect. Waits until the ledger holds the
  // round that is being prepared and its answers: a run that resumes from the checkpoint does not ask that round again.
  int64_t ledger_position() const;

  int64_t questions() const { return member_.questions(); }  // whose answers are in effect
  double cost() const { return member_.cost(); }
  // Decisions that contradicted the graph: the ledger keeps them, the graph does not use them.
  int64_t contradictions() const { return member_.contradictions(); }
  // Sentences about answers that the constructor found and refused (rank 0); once, before the first boundary.
  std::vector<std::string> refused_at_start();
  // Sentences of the last boundary: contradictions with the chain behind the first, answers that were refused, why no
  // question is asked (once for each reason); "" when there were none. Only rank 0's are complete.
  const std::string& warning() const { return warning_; }
  // Whether the run ends because questions are unanswered (oracle.wait=exit). The same on every rank.
  bool leaves() const { return exits_now_; }
  int64_t open_questions() const { return member_.open(); }
  int64_t waiting() const { return member_.waiting(); }  // decisions that take effect later
  const RoundTimes& times() const { return times_; }

 private:
  // The result of a worker thread; on other ranks than 0 without message and refused.
  struct Prepared {
    RoundMessage message = {};
    oracle::NoQuestion why = oracle::NoQuestion::none;
    std::optional<double> choose_ms = {};  // empty: nothing was to be chosen
    std::vector<std::string> refused = {};
  };

  void start_round(int64_t step, const EmbedPool& embed);
  Prepared prepare(const oracle::Pool& pool, oracle::Round round, const std::vector<SamplePair>& contradicted,
                   int64_t step);
  void collect();
  void insert_due(int64_t step);
  void warn(const std::string& sentence);
  void warn_once(const std::string& kind, const std::string& sentence);

  comm::Comm& comm_;         // used by the training thread
  comm::Comm& worker_comm_;  // used by the worker threads
  graph::GraphStore& store_;
  const QuestionContext context_;
  const oracle::OracleSpec settings_;
  std::unique_ptr<oracle::QuerySampler> sampler_;
  std::unique_ptr<RoundLeader> leader_;  // null on other ranks than 0
  RoundMember member_;
  RoundStart start_;
  bool under_way_ = false;  // a round was started and not collected yet
  bool exits_now_ = false;
  RoundTimes times_;
  std::string warning_;
  std::set<std::string> warned_;  // kinds of sentences that appear once
  // The worker thread's result. Ranks other than 0 have a worker only if they hold rows of the pool. The last member:
  // its destructor waits for the thread, which uses the others.
  std::future<Prepared> preparing_;
};

}  // namespace pal::dist
