// hub_pairs: which of the components with many negatives (hubs) are known to differ: a row of bits for each hub.
//
// In a large set of answers a few components have most of the negatives: the templates that everything is asked against.
// A batch meets them all, and a look into the table of pairs for every two of them would cost a cache miss each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pal::graph {

class HubPairs {
 public:
  // Answers "different" that make a component a hub. N answers make at most 2 N / kNegatives hubs.
  static constexpr int64_t kNegatives = 1024;
  using Row = std::vector<uint64_t>;  // bit n: hub n differs; may be shorter than the number of hubs

  // −1: the component is no hub.
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
  // The two differ; that one of them is no hub changes nothing.
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
  // Calls f(n) for every bit that is in both, ascending.
  template <class F>
  static void for_each_common(const Row& a, const Row& b, const F& f) {
    for (size_t w = 0; w < std::min(a.size(), b.size()); ++w) each_bit(w, a[w] & b[w], f);
  }
  // Calls f(n) for every bit of `of` that `row` has not, ascending.
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
  std::vector<int32_t> free_;  // numbers of hubs that are gone
};

}  // namespace pal::graph
