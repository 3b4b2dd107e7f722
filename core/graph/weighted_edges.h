// weighted_edges: weighted pairs of samples given by the user, as symmetric CSR.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pal::graph {

struct WeightedPair {
  int64_t i = 0, j = 0;
  double weight = 1.0;
};

class WeightedEdges {
 public:
  WeightedEdges() = default;
  // Takes each unordered pair once, or several times with the same weight. Throws Error (data), with `source` in it,
  // for a sample out of range, a weight that is not finite, or a pair with two different weights.
  WeightedEdges(int64_t samples, std::vector<WeightedPair> pairs, const std::string& source);

  bool empty() const { return columns_.empty(); }
  int64_t samples() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t pairs() const { return pairs_; }    // unordered
  double weight(int64_t i, int64_t j) const;  // 0 without an edge
  // Row i is entries [offsets[i], offsets[i + 1]), columns ascending.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  const std::vector<int32_t>& columns() const { return columns_; }
  const std::vector<double>& weights() const { return weights_; }
  uint64_t fingerprint() const;

 private:
  std::vector<int64_t> offsets_{0};  // (samples + 1)
  std::vector<int32_t> columns_;
  std::vector<double> weights_;
  int64_t pairs_ = 0;
};

}  // namespace pal::graph
