// label_stats: how far the answers have come: what was asked, what follows from it, who agrees with whom, what contradicts.
//
// Math:  known pairs = pairs of samples whose relation answers tell or imply, without those that the labels told before:
//        Σ_c s_c(s_c − 1)/2 of the components and Σ s_a·s_b of components known to differ.
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
// Questions to which people said different things, newest first.
struct Disagreement {
  int64_t query = 0, i = 0, j = 0;
  std::vector<std::pair<std::string, std::string>> said = {};  // annotator, verdict
};
// A link of a chain with the question behind it; query 0: labels told it.
struct AskedLink {
  graph::Link link;
  int64_t query = 0, member = 0;
};
struct Dispute {
  oracle::Decision answer;  // against what the chain says
  std::vector<AskedLink> chain = {};
};
struct GoldScore {
  int64_t right = 0, of = 0;
};

struct LabelStats {
  int64_t samples = 0;
  int64_t questions = 0, open = 0, answered = 0, answers = 0;  // answered: questions with a verdict
  int64_t told = 0;                                            // pairs whose relation an answer told
  int64_t known = 0;                                           // told or implied
  int64_t components = 0, unsure = 0, broken = 0;
  double cost = 0, seconds = 0;  // seconds: that people spent
  std::vector<HistoryPoint> history = {};
  oracle::AgreementReport agreement = {};
  std::map<std::string, GoldScore> gold = {};  // by annotator
  std::vector<Disagreement> disagreements = {};
  std::vector<Dispute> disputes = {};
  std::shared_ptr<const graph::GraphStore> store = {};              // with all of it
  std::unordered_map<int64_t, std::vector<int64_t>> examples = {};  // some members of each component of two or more
};

// `before`: what was known without answers. `labels`: (N), −1 unknown: the truth of gold questions.
LabelStats label_stats(const oracle::Ledger& ledger, const graph::GraphStore& before, oracle::ConsensusKind consensus,
                       const std::vector<int64_t>& labels);

}  // namespace pal::label
