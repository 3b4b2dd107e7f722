// consensus: one verdict from the answers of several annotators: by majority, or by Dawid and Skene's model of their
// errors. The only majority rule: training, `pal ask`, the labeling page and the offline study decide by it.
//
// majority     the most frequent verdict, its share as confidence; a tie is `unsure`
// dawid_skene  expectation maximization over all answers of the ledger: a confusion matrix for each annotator (with one
//              pseudo-count on each right answer and a tenth on each wrong one, so that a few answers prove little) and
//              the shares of the verdicts; the verdict of the largest posterior, which is the confidence
// Only yes and no are estimated. A question most of whose answers are unsure or broken is decided by majority; skip
// counts as no answer, and without an answer the verdict is skip: the question is open.
// Order: results depend on the answers and not on their order.
// Reference: Dawid and Skene, Applied Statistics 28 (1979).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

enum class ConsensusKind { majority, dawid_skene };

struct Agreed {
  Verdict verdict = Verdict::skip;
  double confidence = 1;
};
Agreed majority(const Question& question);

// How an annotator answers when the truth is no (0) or yes (1).
struct AnnotatorModel {
  double says[2][2] = {{0.5, 0.5}, {0.5, 0.5}};  // [truth][said]
  double error() const { return 0.5 * (says[0][1] + says[1][0]); }
};
struct DawidSkene {
  std::map<std::string, AnnotatorModel> annotators;
  double yes = 0.5;  // share of questions whose truth is yes
  int64_t iterations = 0;
  Agreed agree(const Question& question) const;
};
DawidSkene estimate_annotators(const std::vector<Question>& all);

// Decisions about `questions`, effective at that step. `all`: every question of the ledger, for dawid_skene only.
std::vector<Decision> decide(const std::vector<Question>& questions, ConsensusKind kind,
                             const std::vector<Question>& all, int64_t effective_step);

}  // namespace pal::oracle
