// annotators: who answered how much, how fast, and how far people agree: raw, Cohen's and Fleiss' kappa.
//
// Math:  p_o the share of equal answers, p_e that expected by chance from how often each verdict is said; κ = (p_o − p_e) /
//        (1 − p_e), 1 when p_e is 1. Cohen: two annotators, over the questions both answered. Fleiss: all annotators, over the
//        questions with two answers or more (the number may differ between questions); p_o the mean over questions of the
//        share of agreeing pairs. Answers that were taken back, and skips, do not count.
// Reference: Cohen (1960); Fleiss (1971).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

struct AnnotatorPace {
  std::string annotator;
  int64_t answers = 0;  // that stand
  int64_t withdrawn = 0;
  double seconds = 0;  // median of an answer, of those that tell
  double cost = 0;     // of all, also those taken back
};
struct PairAgreement {
  std::string a, b;
  int64_t questions = 0;  // both answered
  double raw = 0, cohen = 0;
};
struct AgreementReport {
  int64_t questions = 0;                  // with two answers or more
  double raw = 0, fleiss = 0;             // of those; 0 when there is none
  std::vector<PairAgreement> pairs;       // by names; of those with a question in common
  std::vector<AnnotatorPace> annotators;  // by name
};
AgreementReport annotator_report(const std::vector<RecordedAnswer>& answers);

}  // namespace pal::oracle
