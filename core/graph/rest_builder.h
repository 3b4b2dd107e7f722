// rest_builder: the sparse rest of a batch from pairs of (position, sample), whatever of the samples is in the batch.
#pragma once

#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/graph/batch_graph.h"

namespace pal {

class RestBuilder {
 public:
  explicit RestBuilder(const std::vector<int64_t>& samples);   // (positions) of the batch

  // Adds the weight between position p and every position of `sample`. The caller adds the other direction.
  void add(int64_t p, int64_t sample, double weight) {
    const auto at = first_.find(sample);
    if (at == first_.end()) return;
    for (int32_t q = at->second; q >= 0; q = next_[q]) entries_.emplace_back(static_cast<int32_t>(p), q, weight);
  }
  void add_position(int64_t p, int64_t q, double weight) {
    entries_.emplace_back(static_cast<int32_t>(p), static_cast<int32_t>(q), weight);
  }
  // What was added, sorted, entries of one pair summed. Empty when nothing was.
  SparseRest take();

 private:
  std::unordered_map<int64_t, int32_t> first_;   // sample → its first position
  std::vector<int32_t> next_;                    // (positions) the next of the same sample, −1 none
  std::vector<std::tuple<int32_t, int32_t, double>> entries_;
};

}  // namespace pal
