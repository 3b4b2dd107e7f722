// stop_rules: when no more questions are asked. The first rule that holds is the reason; training continues to its end.
//
//   questions, cost, hours   a budget is spent (0: no such budget)
//   closure                  every pair is answered or inferred: nothing is left to ask; always checked
//   plateau                  the validation figure did not rise by `gain` above its best in so many evaluations (0:
//                            never)
//   agreement                in three rounds in a row the model predicted at least this share of the answers (0: never)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/store.h"

namespace pal::oracle {

enum class StopReason : int8_t { none, questions, cost, hours, closure, plateau, agreement };

struct StopLimits {
  int64_t questions = 0;
  double cost = 0, hours = 0;
  int64_t plateau = 0;
  double gain = 0;
  double agreement = 0;
};
// The questions so far.
struct StopState {
  int64_t questions = 0;  // asked
  double cost = 0;        // of all answers
  double hours = 0;       // since the first question
  bool closure = false;
  std::vector<double> figures = {};     // validation figure of each evaluation, in order
  std::vector<double> agreements = {};  // share of predicted answers of each round that had any, in order
};
StopReason stop_reason(const StopLimits& limits, const StopState& state);
// "the budget of 500 questions is spent"
std::string to_sentence(StopReason reason, const StopLimits& limits);

// Whether the relation of every two of these samples (empty: all) is known.
bool closure_reached(const graph::GraphStore& store, const std::vector<int64_t>& samples);

}  // namespace pal::oracle
