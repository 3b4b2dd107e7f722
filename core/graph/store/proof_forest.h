// proof_forest: which answers joined two samples. A tree per component whose edges are the answers that merged it.
//
// The smaller tree is turned round to hang below the answer's other end, so an edge is turned at most log2(N) times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pal::graph {

class ProofForest {
 public:
  static constexpr int32_t kLabel = -1;  // the reason of an edge that no answer made: the two have the same label

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
  // The edges from i to j, in order; they are in one tree.
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

  std::vector<int32_t> up_;   // (samples) toward the root, −1 at it
  std::vector<int32_t> why_;  // (samples) reason of the edge upwards
};

}  // namespace pal::graph
