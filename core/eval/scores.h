// scores: test accuracy of a classifier: top-1, top-5, per class, confusion matrix, confidence interval.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"

namespace pal::eval {

struct Accuracy {
  double top1 = 0;  // share of the test samples
  int64_t train = 0, test = 0;
  double top5 = 0;
  double low = 0, high = 0;        // 95 % interval of top-1, by bootstrap over the test samples
  std::vector<double> per_class;   // (C) recall of the class; NaN without test samples
  std::vector<int64_t> confusion;  // (C, C) true × predicted class; samples without prediction are not counted
};

// The predictions of a classifier.
struct Predictions {
  at::Tensor predicted;  // (n) int64, −1: no prediction
  at::Tensor place;      // (n) int64 rank of the true class (ties: lower classes first); C: no prediction
};
// scores (n, C), larger is better; a row that is not finite gives no prediction. labels (n) in [0, C).
Predictions predictions_of(const at::Tensor& scores, const at::Tensor& labels);

Accuracy tally(const Predictions& predictions, const at::Tensor& labels, int64_t classes, int64_t train);

// Collective. Gathers the predictions of all ranks in rank order. counts: rows per rank.
Predictions gather(const Predictions& own, const std::vector<int64_t>& counts, comm::Comm& comm);

// [low, high]: the central 95 % of hits / n under the bootstrap with infinitely many resamples, which is binomial.
struct Interval {
  double low = 0, high = 0;
};
Interval bootstrap(int64_t hits, int64_t n);

}  // namespace pal::eval
