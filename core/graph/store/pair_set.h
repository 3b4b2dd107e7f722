// pair_set: a set of unordered pairs of ids in one flat table: 8 bytes a slot, no allocation per pair.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pal::graph {

// Ids are ≥ 0 and the two of a pair differ. Open addressing, linear probing, at most 5/8 full.
class PairSet {
 public:
  bool contains(int32_t a, int32_t b) const {
    if (slots_.empty()) return false;
    const uint64_t k = key(a, b);
    for (size_t s = home(k);; s = (s + 1) & mask()) {
      if (slots_[s] == k) return true;
      if (slots_[s] == kEmpty) return false;
    }
  }
  // False when it was there already.
  bool insert(int32_t a, int32_t b) {
    if (size_ * 8 >= slots_.size() * 5) grow();
    if (!place(key(a, b))) return false;
    ++size_;
    return true;
  }
  // False when it was not there.
  bool erase(int32_t a, int32_t b) {
    if (slots_.empty()) return false;
    const uint64_t k = key(a, b);
    size_t hole = home(k);
    while (slots_[hole] != k) {
      if (slots_[hole] == kEmpty) return false;
      hole = (hole + 1) & mask();
    }
    // Later keys of the run move back into the hole, unless that would put them before their home.
    for (size_t s = (hole + 1) & mask(); slots_[s] != kEmpty; s = (s + 1) & mask()) {
      if (((s - home(slots_[s])) & mask()) >= ((s - hole) & mask())) {
        slots_[hole] = slots_[s];
        hole = s;
      }
    }
    slots_[hole] = kEmpty;
    --size_;
    return true;
  }
  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = 0;  // (0, 0) is no pair

  static uint64_t key(int32_t a, int32_t b) {
    const auto [low, high] = std::minmax(a, b);
    return static_cast<uint64_t>(static_cast<uint32_t>(low)) << 32 | static_cast<uint32_t>(high);
  }
  size_t mask() const { return slots_.size() - 1; }
  size_t home(uint64_t k) const {  // splitmix64's finalizer
    k = (k ^ (k >> 30)) * 0xBF58476D1CE4E5B9ull;
    k = (k ^ (k >> 27)) * 0x94D049BB133111EBull;
    return static_cast<size_t>(k ^ (k >> 31)) & mask();
  }
  bool place(uint64_t k) {
    size_t s = home(k);
    for (; slots_[s] != kEmpty; s = (s + 1) & mask()) {
      if (slots_[s] == k) return false;
    }
    slots_[s] = k;
    return true;
  }
  void grow() {
    std::vector<uint64_t> old(std::max<size_t>(16, slots_.size() * 2), kEmpty);
    old.swap(slots_);
    for (uint64_t k : old) {
      if (k != kEmpty) place(k);
    }
  }

  std::vector<uint64_t> slots_;
  size_t size_ = 0;
};

}  // namespace pal::graph
