// parts: the parts of a report, as HTML. If a part cannot be made, a sentence gives the reason.
//
// curves.cpp draws what metrics.jsonl and eval.json hold. samples.cpp (neighbors of test samples, the plot of the
// features) and questions.cpp need the encoder or the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "launch/run/run_summary.h"

namespace pal::launch {

// Curves of one run or several, without quantities that no run has.
std::string curve_figures(const std::vector<RunSummary>& runs);
// The confusion matrix of the first evaluation that has one; "" if there is none.
std::string confusion_figure(const RunSummary& run);

struct SampleOptions {
  int64_t queries = 10, neighbors = 7;  // rows and columns of the montage
  int64_t train = 4000, test = 2000;    // samples that are embedded
  int64_t questions = 40;               // of the ledger, the last ones
  at::Device device = at::kCPU;         // that embeds
};

struct SampleParts {
  std::string neighbors, plane;  // HTML
};
SampleParts sample_parts(const RunSummary& run, const SampleOptions& options);

// The last questions of the run's ledger with the answers; "" when the run asked none.
std::string question_table(const RunSummary& run, const SampleOptions& options);

// Features in the plane of their two directions of most variance, one mark per class, as SVG. At most 3000 rows,
// evenly spaced. No labels: one mark; more than 40 classes: no names.
std::string embedding_plot(const at::Tensor& features, const std::vector<int64_t>& labels,
                           const std::vector<std::string>& classes);

}  // namespace pal::launch
