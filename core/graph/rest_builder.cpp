#include "core/graph/rest_builder.h"

#include <algorithm>
#include <utility>

namespace pal::graph {

void RestBuilder::index() {
  numbers_.emplace(samples_.size());
  first_.assign(samples_.size(), -1);
  next_.assign(samples_.size(), -1);
  for (size_t k = samples_.size(); k > 0; --k) {  // from behind: lists come out ascending
    const auto p = static_cast<int32_t>(k - 1);
    next_[p] = std::exchange(first_[numbers_->number(samples_[p])], p);
  }
}

SparseRest RestBuilder::take() {
  SparseRest rest;
  if (entries_.empty()) return rest;
  // By pair; equal pairs stay in the order they came in, so that (p, q) and (q, p) sum to the same bits.
  std::stable_sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  rest.offsets.assign(samples_.size() + 1, 0);
  int32_t last_p = -1;
  for (const auto& [p, q, w] : entries_) {
    if (p == last_p && rest.columns.back() == q) {
      rest.weights.back() += w;
      continue;
    }
    last_p = p;
    rest.columns.push_back(q);
    rest.weights.push_back(w);
    ++rest.offsets[p + 1];
  }
  for (size_t p = 0; p < samples_.size(); ++p) rest.offsets[p + 1] += rest.offsets[p];
  entries_.clear();
  return rest;
}

}  // namespace pal::graph
