// annotators: answers, pace and agreement of annotators: raw agreement, Cohen's and Fleiss' kappa.
//
// Math:  p_o the share of equal answers, p_e that expected by chance from the frequency of each verdict; κ = (p_o −
//        p_e) / (1 − p_e), 1 when p_e is 1. Cohen: two annotators, over the questions both answered. Fleiss: all
//        annotators, over the questions with two answers or more (the number may differ between questions); p_o the
//        mean over questions of the share of agreeing pairs. Withdrawn answers and skips do not count.
// Reference: Cohen (1960); Fleiss (1971).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

struct AnnotatorPace {
  std::string annotator;
  int64_t answers = 0;  // not withdrawn
  int64_t withdrawn = 0;
  double seconds = 0;  // median of an answer, where it is known
  double cost = 0;     // of all answers, withdrawn ones too
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
