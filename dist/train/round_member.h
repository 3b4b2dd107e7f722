// round_member: what every rank holds of the query rounds: the decisions that wait for their step, the decisions in
// effect, and how they enter the graph.
//
// Order: every rank receives the same messages and inserts the same decisions before the same step, so all members, and
//   all graphs, are equal.
// A decision that contradicts the graph is left out. With oracle.repeats its question, and those of the least certain
// links of the chain that it contradicts, are put to further annotators (contradicted()). A decision that changes
// (outvoted, or an answer was withdrawn) replaces the earlier one; the decisions left out are then tried again.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/store.h"
#include "core/oracle/oracle.h"
#include "core/oracle/round/round.h"
#include "dist/train/round_message.h"

namespace pal::dist {

class RoundMember {
 public:
  // `store` must outlive this.
  RoundMember(const oracle::OracleSpec& settings, graph::GraphStore& store) : settings_(settings), store_(store) {}

  void receive(RoundMessage message);
  // Inserts the decisions that take effect up to `step`; returns those that contradict the graph.
  std::vector<oracle::Contradiction> insert_due(int64_t step);
  // Pairs of contradictions whose questions need one more answer; found by insert_due() since the last call.
  std::vector<SamplePair> take_contradicted() { return std::exchange(contradicted_pairs_, {}); }
  // What the next round must know: pending and closed pairs, coarse decisions.
  oracle::Round next_round(int64_t round, int64_t questions) const;

  int64_t asked() const { return asked_; }                                   // questions in the ledger
  int64_t open() const { return open_; }                                     // of them, without enough answers
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }  // decisions that take effect later
  oracle::StopReason stop() const { return stop_; }
  int64_t questions() const { return questions_; }  // whose answers are in effect
  double cost() const { return cost_; }
  int64_t contradictions() const { return contradictions_; }

 private:
  struct Known {
    oracle::Decision decision;
    bool inserted = false;
  };
  static SamplePair pair_of(const oracle::Decision& d) { return std::minmax(d.i, d.j); }
  void add_contradicted(const std::vector<oracle::Contradiction>& against);

  const oracle::OracleSpec settings_;
  graph::GraphStore& store_;
  std::vector<oracle::Decision> waiting_;               // by effective_step
  std::map<std::pair<int64_t, int64_t>, Known> known_;  // (query, member) → its newest decision in effect
  std::vector<oracle::Decision> left_out_;              // they contradict the graph
  std::vector<SamplePair> contradicted_pairs_;
  int64_t asked_ = 0, open_ = 0;
  oracle::StopReason stop_ = oracle::StopReason::none;
  int64_t questions_ = 0, contradictions_ = 0;
  double cost_ = 0;
};

}  // namespace pal::dist
