// batch_graph: sums over all pairs of a batch in O(samples · 2^layers + nnz): no implied pair is ever listed.
#include "core/graph/batch_graph.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <unordered_map>

#include "kernels/base/error.h"

namespace pal {
namespace {

// How many ordered pairs of rows agree (share a block) in every layer of `set`, a bit per layer. A pair of positions
// stands for V² pairs of rows, V of them on the diagonal when it is a position with itself. Exact: below 2^53.
double agreeing_rows(const BatchGraph& graph, SelfLoops self_loops, unsigned set) {
  std::vector<int64_t> id;   // the intersection of the blocks seen so far, −1 where a layer has none
  int64_t groups = 0;
  for (size_t l = 0; l < graph.layers.size(); ++l) {
    if (!(set >> l & 1u)) continue;
    const BlockLayer& layer = graph.layers[l];
    if (id.empty()) {
      id.assign(layer.block.begin(), layer.block.end());
      groups = layer.blocks;
      continue;
    }
    std::unordered_map<int64_t, int64_t> compact;
    compact.reserve(id.size());
    for (size_t p = 0; p < id.size(); ++p) {
      if (id[p] < 0 || layer.block[p] < 0) {
        id[p] = -1;
      } else {
        id[p] = compact.emplace(id[p] * layer.blocks + layer.block[p], compact.size()).first->second;
      }
    }
    groups = static_cast<int64_t>(compact.size());
  }
  std::vector<double> rows(groups, 0);
  for (int64_t i : id) {
    if (i >= 0) rows[i] += graph.views;
  }
  double pairs = 0;
  for (double r : rows) pairs += self_loops == SelfLoops::on ? r * r : r * (r - 1);
  return pairs;
}

double block_weight(const BatchGraph& graph, int64_t p, int64_t q) {
  double w = 0;
  for (const BlockLayer& layer : graph.layers) {
    if (layer.block[p] >= 0 && layer.block[p] == layer.block[q]) w += layer.weight;
  }
  return w;
}

// Σ f(G_ij) over all ordered pairs of rows, f(0) = 0: pairs are counted by the exact set of layers they agree in
// (Möbius inversion over subsets), then the entries of the rest are corrected one by one.
template <class F>
double sum_over_pairs(const BatchGraph& graph, SelfLoops self_loops, const F& f) {
  PAL_ASSERT(graph.layers.size() <= kMaxLayers, "a batch graph has few layers");
  const unsigned sets = 1u << graph.layers.size();
  std::vector<double> exact(sets, 0);
  for (unsigned s = 1; s < sets; ++s) exact[s] = agreeing_rows(graph, self_loops, s);
  for (unsigned bit = 1; bit < sets; bit <<= 1) {
    for (unsigned s = 1; s < sets; ++s) {
      if (!(s & bit)) exact[s] -= exact[s | bit];
    }
  }
  double sum = 0;
  for (unsigned s = 1; s < sets; ++s) {
    double weight = 0;
    for (size_t l = 0; l < graph.layers.size(); ++l) {
      if (s >> l & 1u) weight += graph.layers[l].weight;
    }
    sum += exact[s] * f(weight);
  }
  const SparseRest& rest = graph.rest;
  const double views = graph.views;
  for (int64_t p = 0; p + 1 < static_cast<int64_t>(rest.offsets.size()); ++p) {
    for (int64_t e = rest.offsets[p]; e < rest.offsets[p + 1]; ++e) {
      const bool loop = rest.columns[e] == p && self_loops == SelfLoops::off;
      const double blocks = block_weight(graph, p, rest.columns[e]);
      sum += (views * views - (loop ? views : 0)) * (f(blocks + rest.weights[e]) - f(blocks));
    }
  }
  return sum;
}

}  // namespace

double edge_mass(const BatchGraph& graph) {
  return sum_over_pairs(graph, SelfLoops::off, [](double w) { return std::abs(w); });
}

double squared_norm(const BatchGraph& graph, SelfLoops self_loops) {
  return sum_over_pairs(graph, self_loops, [](double w) { return w * w; });
}

std::vector<double> diagonal(const BatchGraph& graph) {
  std::vector<double> d(graph.samples);
  for (int64_t p = 0; p < graph.samples; ++p) {
    d[p] = block_weight(graph, p, p);
    if (graph.rest.offsets.empty()) continue;
    const auto begin = graph.rest.columns.begin() + graph.rest.offsets[p];
    const auto end = graph.rest.columns.begin() + graph.rest.offsets[p + 1];
    const auto at = std::lower_bound(begin, end, static_cast<int32_t>(p));
    if (at != end && *at == p) d[p] += graph.rest.weights[at - graph.rest.columns.begin()];
  }
  return d;
}

bool has_negative_weight(const BatchGraph& graph) {
  const auto negative = [](double w) { return w < 0; };
  return std::any_of(graph.layers.begin(), graph.layers.end(), [](const BlockLayer& l) { return l.weight < 0; }) ||
         std::any_of(graph.rest.weights.begin(), graph.rest.weights.end(), negative);
}

std::vector<double> dense(const BatchGraph& graph, SelfLoops self_loops) {
  const int64_t n = graph.samples, rows = n * graph.views;
  std::vector<double> small(n * n, 0), g(rows * rows, 0);
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t q = 0; q < n; ++q) small[p * n + q] = block_weight(graph, p, q);
    if (graph.rest.offsets.empty()) continue;
    for (int64_t e = graph.rest.offsets[p]; e < graph.rest.offsets[p + 1]; ++e) {
      small[p * n + graph.rest.columns[e]] += graph.rest.weights[e];
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; ++j) {
      if (i != j || self_loops == SelfLoops::on) g[i * rows + j] = small[(i % n) * n + j % n];
    }
  }
  return g;
}

namespace {

std::string pair_text(int64_t p, int64_t q) {
  std::ostringstream text;
  text << "(" << p << ", " << q << ")";
  return text.str();
}

}  // namespace

void check(const BatchGraph& graph) {
  PAL_DATA_CHECK(graph.views >= 1, "views of a batch graph", graph.views, "give at least one");
  PAL_DATA_CHECK(graph.layers.size() <= kMaxLayers, "layers of a batch graph", graph.layers.size(), "merge some of them");
  for (const BlockLayer& layer : graph.layers) {
    PAL_DATA_CHECK(static_cast<int64_t>(layer.block.size()) == graph.samples, "positions of a layer", layer.block.size(),
                   "give one block per position");
    PAL_DATA_CHECK(std::isfinite(layer.weight), "weight of a layer", layer.weight, "give a finite one");
    for (int32_t b : layer.block) {
      PAL_DATA_CHECK(b >= -1 && b < layer.blocks, "block of a position", b, "blocks are −1 (none) to blocks − 1");
    }
  }
  const SparseRest& rest = graph.rest;
  if (rest.offsets.empty()) return;
  PAL_DATA_CHECK(static_cast<int64_t>(rest.offsets.size()) == graph.samples + 1 && rest.offsets.front() == 0 &&
                     rest.offsets.back() == static_cast<int64_t>(rest.columns.size()) &&
                     rest.columns.size() == rest.weights.size() && std::is_sorted(rest.offsets.begin(), rest.offsets.end()),
                 "offsets of the sparse rest", rest.offsets.size(), "give samples + 1 of them, ascending, ending at the entries");
  const auto weight = [&](int64_t p, int64_t q, double absent) {
    const auto begin = rest.columns.begin() + rest.offsets[p], end = rest.columns.begin() + rest.offsets[p + 1];
    const auto at = std::lower_bound(begin, end, static_cast<int32_t>(q));
    return at != end && *at == q ? rest.weights[at - rest.columns.begin()] : absent;
  };
  for (int64_t p = 0; p < graph.samples; ++p) {
    for (int64_t e = rest.offsets[p]; e < rest.offsets[p + 1]; ++e) {
      const int64_t q = rest.columns[e];
      const std::string pair = pair_text(p, q);
      PAL_DATA_CHECK(q >= 0 && q < graph.samples, "pair outside the batch", pair, "columns are positions of the batch");
      PAL_DATA_CHECK(e == rest.offsets[p] || rest.columns[e - 1] < q, "pair out of order or twice", pair, "sort and merge them");
      PAL_DATA_CHECK(std::isfinite(rest.weights[e]), "weight that is not finite at pair", pair, "give a finite one");
    }
  }
  for (int64_t p = 0; p < graph.samples; ++p) {
    for (int64_t e = rest.offsets[p]; e < rest.offsets[p + 1]; ++e) {
      PAL_DATA_CHECK(weight(rest.columns[e], p, std::nan("")) == rest.weights[e], "asymmetric weight at pair",
                     pair_text(p, rest.columns[e]), "give both directions the same weight");
    }
  }
}

}  // namespace pal
