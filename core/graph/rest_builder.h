// rest_builder: the sparse rest of a batch from pairs of (position, sample), whatever of the samples is in the batch.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "core/graph/batch_graph.h"
#include "core/graph/numbering.h"

namespace pal::graph {

class RestBuilder {
 public:
  explicit RestBuilder(const std::vector<int64_t>& samples)
      : samples_(samples) {}  // (positions) of the batch, outlives this

  // Adds the weight between position p and every position of `sample`. The caller adds the other direction.
  void add(int64_t p, int64_t sample, double weight) {
    if (!numbers_) index();
    const int32_t number = numbers_->find(sample);
    if (number < 0) return;
    for (int32_t q = first_[number]; q >= 0; q = next_[q]) entries_.emplace_back(static_cast<int32_t>(p), q, weight);
  }
  void add_position(int64_t p, int64_t q, double weight) {
    entries_.emplace_back(static_cast<int32_t>(p), static_cast<int32_t>(q), weight);
  }
  // What was added, sorted, entries of one pair summed. Empty when nothing was.
  SparseRest take();

 private:
  void index();

  const std::vector<int64_t>& samples_;
  std::optional<Numbering> numbers_;  // of the samples, once one is asked for
  std::vector<int32_t> first_;        // number → its first position
  std::vector<int32_t> next_;         // (positions) the next of the same sample, −1 none
  std::vector<std::tuple<int32_t, int32_t, double>> entries_;
};

}  // namespace pal::graph
