#include "core/oracle/stop_rules.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace pal::oracle {
namespace {

constexpr size_t kAgreeingRounds = 3;
constexpr size_t kMostComponents = 4096;  // the check is quadratic; questions never reach all pairs of more

bool on_plateau(const std::vector<double>& figures, int64_t evaluations, double gain) {
  const auto n = static_cast<int64_t>(figures.size());
  if (evaluations == 0 || n <= evaluations) return false;
  const double before = *std::max_element(figures.begin(), figures.end() - evaluations);
  return *std::max_element(figures.end() - evaluations, figures.end()) < before + gain;
}

bool agrees(const std::vector<double>& shares, double enough) {
  return enough > 0 && shares.size() >= kAgreeingRounds &&
         std::all_of(shares.end() - kAgreeingRounds, shares.end(), [&](double share) { return share >= enough; });
}

}  // namespace

StopReason stop_reason(const StopLimits& limits, const StopState& state) {
  if (limits.questions > 0 && state.questions >= limits.questions) return StopReason::questions;
  if (limits.cost > 0 && state.cost >= limits.cost) return StopReason::cost;
  if (limits.hours > 0 && state.hours >= limits.hours) return StopReason::hours;
  if (state.closure) return StopReason::closure;
  if (on_plateau(state.figures, limits.plateau, limits.gain)) return StopReason::plateau;
  if (agrees(state.agreements, limits.agreement)) return StopReason::agreement;
  return StopReason::none;
}

std::string to_sentence(StopReason reason, const StopLimits& limits) {
  std::ostringstream out;
  switch (reason) {
    case StopReason::none:
      break;
    case StopReason::questions:
      out << "the budget of " << limits.questions << " questions is spent (oracle.budget)";
      break;
    case StopReason::cost:
      out << "the budget of " << limits.cost << " is spent (oracle.budget_cost)";
      break;
    case StopReason::hours:
      out << limits.hours << " hours have passed since the first question (oracle.budget_hours)";
      break;
    case StopReason::closure:
      out << "every pair is answered or inferred";
      break;
    case StopReason::plateau:
      out << "the validation figure did not rise in " << limits.plateau << " evaluations (oracle.plateau)";
      break;
    case StopReason::agreement:
      out << "the model predicted " << 100 * limits.agreement << " % of the answers in " << kAgreeingRounds
          << " rounds (oracle.agreement)";
      break;
  }
  return out.str();
}

bool closure_reached(const graph::GraphStore& store, const std::vector<int64_t>& samples) {
  std::vector<int64_t> units = samples;
  if (units.empty()) {
    units.resize(store.samples());
    std::iota(units.begin(), units.end(), int64_t{0});
  }
  if (store.deduction() == graph::Deduction::on) {
    for (int64_t& u : units) u = store.component(u);
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
  }
  if (units.size() > kMostComponents) return false;
  for (size_t a = 0; a < units.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (store.relation(units[a], units[b]) == graph::Relation::unknown) return false;
    }
  }
  return true;
}

}  // namespace pal::oracle
