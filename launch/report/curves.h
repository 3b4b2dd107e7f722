// curves: the figures of a report that metrics.jsonl and eval.json make: curves of one run or of several, confusion.
#pragma once

#include <string>
#include <vector>

#include "launch/run/run_summary.h"

namespace pal::launch {

// Figures as HTML; a quantity that no run has is left out.
std::string curve_figures(const std::vector<RunSummary>& runs);
// The confusion matrix of the first evaluation that has one; "" without.
std::string confusion_figure(const RunSummary& run);

}  // namespace pal::launch
