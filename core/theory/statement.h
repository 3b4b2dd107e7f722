// statement: one claim of the paper, checked: what it says, the measured figure, and whether it holds.
//
// Where the print is wrong the statement says what holds instead, and the figure shows both.
#pragma once

#include <string>
#include <vector>

namespace pal::theory {

struct CheckedClaim {
  std::string group, claim, figure;
  bool holds = false;
};

std::vector<CheckedClaim> check_identities();  // PAPER section 2
std::vector<CheckedClaim> check_recovery();    // labels from a graph
std::vector<CheckedClaim> check_optima();      // minimizers in a free Z, and the Bayes optimum
std::vector<CheckedClaim> check_sampling();    // the sampled losses, and gradient descent on them

// All of the above, in this order.
std::vector<CheckedClaim> check_statements();

}  // namespace pal::theory
