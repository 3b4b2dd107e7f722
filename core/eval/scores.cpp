#include "core/eval/scores.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/philox.h"

namespace pal {
namespace {

constexpr int kDraws = 1000;
constexpr double kTail = 0.025;

}  // namespace

Judged judge(const at::Tensor& scores, const at::Tensor& labels) {
  const at::NoGradGuard no_grad;
  const int64_t classes = scores.size(1);
  const at::Tensor truth = labels.unsqueeze(1), own = scores.gather(1, truth);
  const at::Tensor lower = at::arange(classes, labels.options()).unsqueeze(0).lt(truth);
  const at::Tensor above = scores.gt(own).logical_or(scores.eq(own).logical_and(lower)).sum(1);
  const at::Tensor silent = scores.isfinite().all(1).logical_not();
  return {scores.argmax(1).masked_fill(silent, -1), above.masked_fill(silent, classes)};
}

Interval bootstrap(const std::vector<uint8_t>& hits) {
  const auto n = static_cast<uint64_t>(hits.size());
  if (n == 0) return {};
  std::vector<uint64_t> sums;
  for (int d = 0; d < kDraws; ++d) {
    Random random(0, Purpose::noise, static_cast<uint64_t>(d), n);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; ++i) sum += hits[random.below(n)];
    sums.push_back(sum);
  }
  std::sort(sums.begin(), sums.end());
  const auto at = [&](double share) { return static_cast<double>(sums[static_cast<size_t>(share * (kDraws - 1) + 0.5)]) / static_cast<double>(n); };
  return {at(kTail), at(1 - kTail)};
}

Accuracy tally(const Judged& judged, const at::Tensor& labels, int64_t classes, int64_t train) {
  Accuracy a;
  a.train = train;
  a.test = labels.size(0);
  a.confusion.assign(static_cast<size_t>(classes * classes), 0);
  std::vector<int64_t> of(static_cast<size_t>(classes)), found(static_cast<size_t>(classes));
  std::vector<uint8_t> hits;
  const at::Tensor l = labels.contiguous(), p = judged.predicted.contiguous(), r = judged.place.contiguous();
  for (int64_t i = 0; i < a.test; ++i) {
    const int64_t label = l.const_data_ptr<int64_t>()[i], said = p.const_data_ptr<int64_t>()[i], place = r.const_data_ptr<int64_t>()[i];
    ++of[static_cast<size_t>(label)];
    hits.push_back(place == 0);
    found[static_cast<size_t>(label)] += place == 0;
    a.top1 += place == 0;
    a.top5 += place < std::min<int64_t>(5, classes);
    if (said >= 0) ++a.confusion[static_cast<size_t>(label * classes + said)];
  }
  a.top1 /= static_cast<double>(std::max<int64_t>(a.test, 1));
  a.top5 /= static_cast<double>(std::max<int64_t>(a.test, 1));
  for (size_t c = 0; c < of.size(); ++c) a.per_class.push_back(of[c] > 0 ? static_cast<double>(found[c]) / static_cast<double>(of[c]) : std::nan(""));
  const Interval interval = bootstrap(hits);
  a.low = interval.low;
  a.high = interval.high;
  return a;
}

Judged gather(const Judged& own, const std::vector<int64_t>& counts, Comm& comm) {
  const at::Tensor both = comm.all_gather_v(at::stack({own.predicted, own.place}, 1).contiguous(), counts);
  return {both.select(1, 0).contiguous(), both.select(1, 1).contiguous()};
}

}  // namespace pal
