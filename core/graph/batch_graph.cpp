// batch_graph: single weights, the dense form for tests, and the check of what was built.
#include "core/graph/batch_graph.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "kernels/base/error.h"

namespace pal::graph {

double smooth_weight(const BatchGraph& graph, int64_t p, int64_t q) {
  double w = 0;
  for (const BlockLayer& layer : graph.layers) w += layer.between(p, q);
  for (const FeatureLayer& layer : graph.features) w += layer.between(p, q);
  return w;
}

std::vector<double> diagonal(const BatchGraph& graph) {
  std::vector<double> d(graph.samples);
  for (int64_t p = 0; p < graph.samples; ++p) {
    d[p] = smooth_weight(graph, p, p);
    if (graph.rest.offsets.empty()) continue;
    const auto begin = graph.rest.columns.begin() + graph.rest.offsets[p];
    const auto end = graph.rest.columns.begin() + graph.rest.offsets[p + 1];
    const auto at = std::lower_bound(begin, end, static_cast<int32_t>(p));
    if (at != end && *at == p) d[p] += graph.rest.weights[at - graph.rest.columns.begin()];
  }
  return d;
}

std::vector<double> dense(const BatchGraph& graph, SelfLoops self_loops) {
  const int64_t n = graph.samples, rows = n * graph.views;
  std::vector<double> small(n * n, 0), g(rows * rows, 0);
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t q = 0; q < n; ++q) small[p * n + q] = smooth_weight(graph, p, q);
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

void check_table(const BlockLayer& layer) {
  const auto blocks = static_cast<int64_t>(layer.blocks);
  PAL_DATA_CHECK(static_cast<int64_t>(layer.table.size()) == blocks * blocks, "entries of a layer's table",
                 layer.table.size(), "give blocks × blocks of them");
  for (int64_t a = 0; a < blocks; ++a) {
    for (int64_t b = 0; b < blocks; ++b) {
      const double w = layer.table[a * blocks + b];
      PAL_DATA_CHECK(std::isfinite(w), "weight that is not finite between blocks", pair_text(a, b),
                     "give a finite one");
      PAL_DATA_CHECK(w == layer.table[b * blocks + a], "asymmetric weight between blocks", pair_text(a, b),
                     "give both directions the same weight");
    }
  }
}

}  // namespace

void check(const BatchGraph& graph) {
  PAL_DATA_CHECK(graph.views >= 1, "views of a batch graph", graph.views, "give at least one");
  PAL_DATA_CHECK(graph.layers.size() <= kMaxLayers, "layers of a batch graph", graph.layers.size(),
                 "merge some of them");
  for (const BlockLayer& layer : graph.layers) {
    PAL_DATA_CHECK(static_cast<int64_t>(layer.block.size()) == graph.samples, "positions of a layer",
                   layer.block.size(), "give one block per position");
    PAL_DATA_CHECK(std::isfinite(layer.weight), "weight of a layer", layer.weight, "give a finite one");
    for (int32_t b : layer.block) {
      PAL_DATA_CHECK(b >= -1 && b < layer.blocks, "block of a position", b, "blocks are −1 (none) to blocks − 1");
    }
    if (layer.has_table()) check_table(layer);
  }
  for (const FeatureLayer& layer : graph.features) {
    PAL_DATA_CHECK(layer.width > 0 && static_cast<int64_t>(layer.features.size()) == graph.samples * layer.width,
                   "features of a layer", layer.features.size(), "give width of them per position");
    PAL_DATA_CHECK(std::isfinite(layer.weight), "weight of a layer", layer.weight, "give a finite one");
    for (double f : layer.features) PAL_DATA_CHECK(std::isfinite(f), "feature of a position", f, "give a finite one");
  }
  const SparseRest& rest = graph.rest;
  if (rest.offsets.empty()) return;
  PAL_DATA_CHECK(
      static_cast<int64_t>(rest.offsets.size()) == graph.samples + 1 && rest.offsets.front() == 0 &&
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
      PAL_DATA_CHECK(e == rest.offsets[p] || rest.columns[e - 1] < q, "pair out of order or twice", pair,
                     "sort and merge them");
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

}  // namespace pal::graph
