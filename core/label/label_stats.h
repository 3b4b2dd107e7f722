// label_stats: figures of the answers so far: questions, answered and inferred pairs, agreement of people,
// contradictions.
//
// Math:  known pairs = pairs of samples whose relation is answered or inferred from answers, without those known by
//        labels: Σ_c s_c(s_c − 1)/2 of the components and Σ s_a·s_b of components known to differ.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/store.h"
#include "core/oracle/ledger/annotators.h"
#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/ledger.h"

namespace pal::label {

struct HistoryPoint {
  int64_t answered = 0;  // questions
  int64_t known = 0, components = 0;
};
// A question with different answers; lists have the newest first.
struct Disagreement {
  int64_t query = 0, i = 0, j = 0;
  std::vector<std::pair<std::string, std::string>> said = {};  // annotator, verdict
};
// A link of a chain with its question; query 0: it comes from labels.
struct AskedLink {
  graph::Link link;
  int64_t query = 0, member = 0;
};
struct Dispute {
  oracle::Decision answer;  // it contradicts the chain
  std::vector<AskedLink> chain = {};
};
struct GoldScore {
  int64_t right = 0, of = 0;
};

struct LabelStats {
  int64_t samples = 0;
  int64_t questions = 0, open = 0, answered = 0, answers = 0;  // answered: questions with a verdict
  int64_t answered_pairs = 0;                                  // pairs whose relation was answered
  int64_t known = 0;                                           // answered or inferred
  int64_t components = 0, unsure = 0, broken = 0;
  int64_t no = 0, timed = 0;     // decisions "no"; answers whose seconds are known (imported ones often have none)
  double cost = 0, seconds = 0;  // seconds: that people spent
  std::vector<HistoryPoint> history = {};
  oracle::AgreementReport agreement = {};
  std::map<std::string, GoldScore> gold = {};  // by annotator
  std::vector<Disagreement> disagreements = {};
  std::vector<Dispute> disputes = {};
  std::shared_ptr<const graph::GraphStore> store = {};              // with all decisions
  std::unordered_map<int64_t, std::vector<int64_t>> examples = {};  // some members of each component of two or more
};

// `before`: the graph without answers. `labels`: (N), −1 unknown: the truth of gold questions.
LabelStats label_stats(const oracle::Ledger& ledger, const graph::GraphStore& before, oracle::ConsensusKind consensus,
                       const std::vector<int64_t>& labels);

}  // namespace pal::label
