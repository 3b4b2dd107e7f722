// scores: what a classifier got right on the test set: top-1, top-5, per class, confusion, and how sure that figure is.
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
  double low = 0, high = 0;        // 95 % of top-1 by bootstrap over the test samples
  std::vector<double> per_class;   // (C) share of the class that was found; NaN without a test sample
  std::vector<int64_t> confusion;  // (C, C) true class × predicted; rows without any prediction are not in it
};

// What a classifier says of each row.
struct Judged {
  at::Tensor predicted;  // (n) int64, −1: nothing
  at::Tensor place;  // (n) int64: classes that scored above the true one (ties: lower classes first); C: nothing said
};
// scores (n, C), the larger the better; a row that is not finite says nothing. labels (n) in [0, C).
Judged judge(const at::Tensor& scores, const at::Tensor& labels);

Accuracy tally(const Judged& judged, const at::Tensor& labels, int64_t classes, int64_t train);

// Collective. This rank's rows of test samples judged → those of all, in rank order. counts: rows per rank.
Judged gather(const Judged& own, const std::vector<int64_t>& counts, comm::Comm& comm);

// [low, high]: the middle 95 % of the share of hits when n samples are drawn with replacement from n of which so many are hits:
// the bootstrap of infinitely many draws, which are binomial.
struct Interval {
  double low = 0, high = 0;
};
Interval bootstrap(int64_t hits, int64_t n);

}  // namespace pal::eval
