#include "core/eval/scores.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace pal::eval {
namespace {

constexpr double kTail = 0.025;

}  // namespace

Predictions predictions_of(const at::Tensor& scores, const at::Tensor& labels) {
  const at::NoGradGuard no_grad;
  const int64_t classes = scores.size(1);
  const at::Tensor truth = labels.unsqueeze(1), own = scores.gather(1, truth);
  const at::Tensor lower = at::arange(classes, labels.options()).unsqueeze(0).lt(truth);
  const at::Tensor above = scores.gt(own).logical_or(scores.eq(own).logical_and(lower)).sum(1);
  const at::Tensor silent = scores.isfinite().all(1).logical_not();
  return {scores.argmax(1).masked_fill(silent, -1), above.masked_fill(silent, classes)};
}

Interval bootstrap(int64_t hits, int64_t n) {
  if (n == 0) return {};
  const double share = static_cast<double>(hits) / static_cast<double>(n);
  if (hits == 0 || hits == n) return {share, share};
  // log P(s) = log n! − log s! − log (n − s)! + s log p + (n − s) log (1 − p)
  const double log_all = std::lgamma(static_cast<double>(n) + 1);
  Interval found;
  double below = 0;
  for (int64_t s = 0; s <= n; ++s) {
    const auto x = static_cast<double>(s), rest = static_cast<double>(n - s);
    const double before = below;
    below += std::exp(log_all - std::lgamma(x + 1) - std::lgamma(rest + 1) + x * std::log(share) +
                      rest * std::log1p(-share));
    if (before < kTail && below >= kTail) found.low = x / static_cast<double>(n);
    if (before < 1 - kTail && below >= 1 - kTail) found.high = x / static_cast<double>(n);
  }
  return found;
}

Accuracy tally(const Predictions& predictions, const at::Tensor& labels, int64_t classes, int64_t train) {
  Accuracy a;
  a.train = train;
  a.test = labels.size(0);
  a.confusion.assign(static_cast<size_t>(classes * classes), 0);
  std::vector<int64_t> of(static_cast<size_t>(classes)), found(static_cast<size_t>(classes));
  int64_t hits = 0;
  const at::Tensor l = labels.contiguous(), p = predictions.predicted.contiguous(), r = predictions.place.contiguous();
  for (int64_t i = 0; i < a.test; ++i) {
    const int64_t label = l.const_data_ptr<int64_t>()[i], said = p.const_data_ptr<int64_t>()[i],
                  place = r.const_data_ptr<int64_t>()[i];
    ++of[static_cast<size_t>(label)];
    hits += place == 0;
    found[static_cast<size_t>(label)] += place == 0;
    a.top5 += place < std::min<int64_t>(5, classes);
    if (said >= 0) ++a.confusion[static_cast<size_t>(label * classes + said)];
  }
  a.top1 = static_cast<double>(hits) / static_cast<double>(std::max<int64_t>(a.test, 1));
  a.top5 /= static_cast<double>(std::max<int64_t>(a.test, 1));
  for (size_t c = 0; c < of.size(); ++c)
    a.per_class.push_back(of[c] > 0 ? static_cast<double>(found[c]) / static_cast<double>(of[c]) : std::nan(""));
  const Interval interval = bootstrap(hits, a.test);
  a.low = interval.low;
  a.high = interval.high;
  return a;
}

Predictions gather(const Predictions& own, const std::vector<int64_t>& counts, comm::Comm& comm) {
  const at::Tensor both = comm.all_gather_v(at::stack({own.predicted, own.place}, 1).contiguous(), counts);
  return {both.select(1, 0).contiguous(), both.select(1, 1).contiguous()};
}

}  // namespace pal::eval
