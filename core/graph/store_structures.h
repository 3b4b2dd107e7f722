// store_structures: the data structures inside GraphStore (core/graph/store.h); nothing else uses them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pal::graph {

// pair_set: a set of unordered pairs of ids in one flat table: 8 bytes a slot, no allocation per pair.
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
  // False if the pair was already there.
  bool insert(int32_t a, int32_t b) {
    if (size_ * 8 >= slots_.size() * 5) grow();
    if (!place(key(a, b))) return false;
    ++size_;
    return true;
  }
  // False if the pair was not there.
  bool erase(int32_t a, int32_t b) {
    if (slots_.empty()) return false;
    const uint64_t k = key(a, b);
    size_t hole = home(k);
    while (slots_[hole] != k) {
      if (slots_[hole] == kEmpty) return false;
      hole = (hole + 1) & mask();
    }
    // Later keys of the run move into the hole, unless that would place them before their home slot.
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

// hub_pairs: a bit matrix of the components with many negatives (hubs): which of them are known to differ.
//
// A few components have most of the negatives: the templates that every sample is compared with. A batch holds all of
// them, and a lookup of each pair in the hash table would be a cache miss.
class HubPairs {
 public:
  // A component with this many answers "different" is a hub. N answers make at most 2 N / kNegatives hubs.
  static constexpr int64_t kNegatives = 1024;
  using Row = std::vector<uint64_t>;  // bit n: differs from hub n; may be shorter than the number of hubs

  // −1 if the component is no hub.
  int32_t number(int32_t component) const {
    const auto at = numbers_.find(component);
    return at == numbers_.end() ? -1 : at->second;
  }
  bool has(int32_t component) const { return number(component) >= 0; }
  const Row& row(int32_t number) const { return rows_[number]; }

  void add(int32_t component) {
    int32_t n = static_cast<int32_t>(rows_.size());
    if (free_.empty()) {
      rows_.emplace_back();
    } else {
      n = free_.back();
      free_.pop_back();
    }
    numbers_.emplace(component, n);
  }
  void erase(int32_t component) {
    const int32_t n = numbers_.at(component);
    for (Row& row : rows_) {
      if (n / 64u < row.size()) row[n / 64u] &= ~(uint64_t{1} << n % 64u);
    }
    rows_[n].clear();
    numbers_.erase(component);
    free_.push_back(n);
  }
  // Records that the two differ; no effect unless both are hubs.
  void mark(int32_t a, int32_t b) {
    const int32_t m = number(a), n = number(b);
    if (m < 0 || n < 0) return;
    set(rows_[m], n);
    set(rows_[n], m);
  }

  static void set(Row& row, int32_t n) {
    if (n / 64u >= row.size()) row.resize(n / 64u + 1, 0);
    row[n / 64u] |= uint64_t{1} << n % 64u;
  }
  // Calls f(n) for every bit set in both rows, ascending.
  template <class F>
  static void for_each_common(const Row& a, const Row& b, const F& f) {
    for (size_t w = 0; w < std::min(a.size(), b.size()); ++w) each_bit(w, a[w] & b[w], f);
  }
  // Calls f(n) for every bit set in `of` but not in `row`, ascending.
  template <class F>
  static void for_each_missing(const Row& row, const Row& of, const F& f) {
    for (size_t w = 0; w < of.size(); ++w) each_bit(w, of[w] & ~(w < row.size() ? row[w] : 0), f);
  }

 private:
  template <class F>
  static void each_bit(size_t word, uint64_t bits, const F& f) {
    for (; bits != 0; bits &= bits - 1) f(static_cast<int32_t>(word * 64) + std::countr_zero(bits));
  }

  std::unordered_map<int32_t, int32_t> numbers_;  // component → hub
  std::vector<Row> rows_;
  std::vector<int32_t> free_;  // unused hub numbers
};

// proof_forest: the answers that joined two samples. A tree per component; its edges are the answers that merged it.
//
// A merge reroots the smaller tree, so an edge is reversed at most log2(N) times.
class ProofForest {
 public:
  static constexpr int32_t kLabel = -1;  // reason of an edge between samples of the same label

  void reset(int64_t samples) {
    up_.assign(samples, -1);
    why_.assign(samples, kLabel);
  }
  // Joins two trees by an edge; `child` is in the smaller one.
  void join(int32_t child, int32_t parent, int32_t why) {
    for (int32_t at = child, above = parent; at >= 0;) {
      const int32_t next = std::exchange(up_[at], above);
      std::swap(why_[at], why);
      above = at;
      at = next;
    }
  }
  struct Edge {
    int32_t from, to, why;
  };
  // The edges from i to j, in order. Both must be in one tree.
  std::vector<Edge> path(int32_t i, int32_t j) const {
    std::vector<int32_t> from = to_root(i), to = to_root(j);
    while (from.size() > 1 && to.size() > 1 && from[from.size() - 2] == to[to.size() - 2]) {
      from.pop_back();
      to.pop_back();
    }
    std::vector<Edge> edges;
    for (size_t k = 0; k + 1 < from.size(); ++k) edges.push_back({from[k], from[k + 1], why_[from[k]]});
    for (size_t k = to.size() - 1; k > 0; --k) edges.push_back({to[k], to[k - 1], why_[to[k - 1]]});
    return edges;
  }

 private:
  std::vector<int32_t> to_root(int32_t i) const {
    std::vector<int32_t> nodes;
    for (; i >= 0; i = up_[i]) nodes.push_back(i);
    return nodes;
  }

  std::vector<int32_t> up_;   // (samples) parent, −1 at the root
  std::vector<int32_t> why_;  // (samples) reason of the edge to the parent
};

}  // namespace pal::graph
