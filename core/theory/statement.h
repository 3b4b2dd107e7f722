// statement: one checked claim of the paper: its text, the measured value, and whether it holds.
//
// If the printed claim is wrong, the text states what holds instead, and the value covers both.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pal::theory {

struct CheckedClaim {
  std::string group, claim, figure;
  bool holds = false;
};

std::vector<CheckedClaim> check_identities();  // identities of the losses
std::vector<CheckedClaim> check_recovery();    // labels from a graph
std::vector<CheckedClaim> check_optima();      // minimizers in a free Z, and the Bayes optimum
std::vector<CheckedClaim> check_sampling();    // the sampled losses, and gradient descent on them

// All of the above, in this order. `progress` is called before each group and at the end with the groups that are done.
using Progress = std::function<void(int64_t done, int64_t total)>;
std::vector<CheckedClaim> check_statements(const Progress& progress = {});

}  // namespace pal::theory
