// curves: the figures of a report from metrics.jsonl and eval.json: curves of one run or several, confusion matrix.
#pragma once

#include <string>
#include <vector>

#include "launch/run/run_summary.h"

namespace pal::launch {

// Figures as HTML, without quantities that no run has.
std::string curve_figures(const std::vector<RunSummary>& runs);
// The confusion matrix of the first evaluation that has one; "" if there is none.
std::string confusion_figure(const RunSummary& run);

}  // namespace pal::launch
