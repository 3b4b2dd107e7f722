// numbering: keys numbered from 0 in the order of their first appearance, in one flat table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/hash.h"

namespace pal::graph {

// Keys are ≥ 0. Open addressing, linear probing; at most `keys` different ones, as said at the start.
class Numbering {
 public:
  explicit Numbering(size_t keys) {
    size_t slots = 16;
    while (slots < 2 * keys) slots *= 2;
    slots_.assign(slots, {kEmpty, 0});
  }

  int32_t size() const { return size_; }
  // The key's number, a new one if it has none.
  int32_t number(int64_t key) {
    Slot& s = slots_[place(key)];
    if (s.key == kEmpty) s = {key, size_++};
    return s.number;
  }
  // −1: the key has none.
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

}  // namespace pal::graph
