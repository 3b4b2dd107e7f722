// batch_parts: what build.cpp makes a batch graph from: numbered keys, the sparse rest, and blocks of negatives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/graph/batch_graph.h"
#include "core/graph/store.h"
#include "kernels/base/hash.h"

namespace pal::graph {

// numbering: keys numbered from 0 in the order of their first appearance, in one flat table.
// Keys are ≥ 0. Open addressing, linear probing. `keys` is the largest number of different keys.
class Numbering {
 public:
  explicit Numbering(size_t keys) {
    size_t slots = 16;
    while (slots < 2 * keys) slots *= 2;
    slots_.assign(slots, {kEmpty, 0});
  }

  int32_t size() const { return size_; }
  // The key's number; a new key gets the next number.
  int32_t number(int64_t key) {
    Slot& s = slots_[place(key)];
    if (s.key == kEmpty) s = {key, size_++};
    return s.number;
  }
  // −1 for an unknown key.
  int32_t find(int64_t key) const {
    const Slot& s = slots_[place(key)];
    return s.key == kEmpty ? -1 : s.number;
  }

 private:
  static constexpr int64_t kEmpty = -1;
  struct Slot {
    int64_t key;
    int32_t number;
  };

  size_t place(int64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t s = static_cast<size_t>(mix(0, static_cast<uint64_t>(key))) & mask;
    while (slots_[s].key != key && slots_[s].key != kEmpty) s = (s + 1) & mask;
    return s;
  }

  std::vector<Slot> slots_;
  int32_t size_ = 0;
};

// rest_builder: collects weighted pairs (position, sample) into the sparse rest; samples outside the batch are ignored.
class RestBuilder {
 public:
  explicit RestBuilder(const std::vector<int64_t>& samples) : samples_(samples) {}  // (positions); must outlive this

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
  // The collected entries, sorted; entries of one pair are summed. Empty without entries.
  SparseRest take();

 private:
  void index();

  const std::vector<int64_t>& samples_;
  std::optional<Numbering> numbers_;  // of the samples; built at the first add()
  std::vector<int32_t> first_;        // number → its first position
  std::vector<int32_t> next_;         // (positions) the next of the same sample, −1 none
  std::vector<std::tuple<int32_t, int32_t, double>> entries_;
};

// negative_blocks: weight −1 between the components of a batch that answers declare different.
//
// A hub (HubPairs) is a component with many negatives. A dense hub differs from at least half of the batch's hubs. Two
// plain layers give every pair of dense hubs −1, and the sparse rest adds +1 to the pairs that are not known to differ.
// All other negative pairs go to the rest, or into a layer with a table if that is smaller. A pair of labeled
// components is skipped: their labels already differ.
class NegativeBlocks {
 public:
  // Requires Deduction::on.
  NegativeBlocks(const GraphStore& store, const std::vector<int64_t>& samples);

  // The component of the sample if it is a dense hub, else −1. A dense hub has no label.
  int64_t dense_hub(int64_t sample) const;
  // Adds the pairs that the layers of dense hubs do not hold, and the corrections to those layers.
  void add_pairs(BatchGraph& graph, RestBuilder& rest) const;

 private:
  using Pairs = std::vector<std::pair<int32_t, int32_t>>;  // a < b, numbers of components

  void find_dense_hubs();
  void add_to_rest(RestBuilder& rest, const Pairs& pairs, double weight) const;
  Pairs pairs_outside() const;

  const GraphStore& store_;
  Numbering number_;         // component of the store → number in the batch
  std::vector<int64_t> id_;  // number → component
  std::vector<std::vector<int32_t>> positions_;
  std::vector<int32_t> hub_;  // component → hub, −1 none
  std::vector<char> dense_;   // component → 1 for a dense hub
  Pairs unknown_pairs_;       // of dense hubs, not known to differ
};

}  // namespace pal::graph
