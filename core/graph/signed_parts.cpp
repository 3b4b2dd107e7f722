#include "core/graph/signed_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/graph/batch_rows.h"
#include "kernels/base/philox.h"

namespace pal::graph {
namespace {

double above_zero(double w) { return std::max(w, 0.0); }

void end_row(SparseRest& rest) { rest.offsets.push_back(static_cast<int64_t>(rest.columns.size())); }

// Layers whose sum over the plain layers that a pair agrees in is max(Σ w, 0). The weight of a set of layers is the
// alternating sum over its subsets. Equal groupings are merged into one layer.
std::vector<BlockLayer> positive_layers(const BatchGraph& graph) {
  const std::vector<const BlockLayer*> plain = plain_layers(graph);
  std::vector<Grouping> intersections = intersections_of_sets(plain);
  double scale = 0;
  for (const BlockLayer* layer : plain) scale += std::abs(layer->weight);
  std::vector<BlockLayer> layers;
  for (unsigned s = 1; s < intersections.size(); ++s) {
    double weight = 0;
    for (unsigned part = s; part > 0; part = (part - 1) & s) {
      weight += (std::popcount(s ^ part) % 2 == 1 ? -1 : 1) * above_zero(weight_of_set(plain, part));
    }
    const auto alike =
        std::find_if(layers.begin(), layers.end(), [&](const BlockLayer& l) { return l.block == intersections[s].of; });
    if (alike != layers.end()) {
      alike->weight += weight;
    } else {
      layers.push_back({std::move(intersections[s].of), intersections[s].groups, weight, {}});
    }
  }
  layers.erase(
      std::remove_if(layers.begin(), layers.end(),
                     [&](const BlockLayer& l) { return l.blocks == 0 || std::abs(l.weight) <= 1e-14 * scale; }),
      layers.end());
  return layers;
}

// True when max(T + Σ w, 0) = max(T, 0) + Σ w: no negative plain weight, and no negative T inside the plain blocks.
bool plain_layers_stay(const BatchGraph& graph, const TableProfiles& tables) {
  for (const BlockLayer* layer : plain_layers(graph)) {
    if (layer->weight < 0) return false;
    const Grouping cells = intersection(grouping(*layer), tables.profile);
    std::vector<std::vector<int32_t>> of_block(layer->blocks);  // the profiles in each block, once each
    std::vector<char> seen(cells.groups, 0);
    for (int64_t p = 0; p < graph.samples; ++p) {
      if (cells.of[p] < 0 || std::exchange(seen[cells.of[p]], 1)) continue;
      std::vector<int32_t>& there = of_block[layer->block[p]];
      there.push_back(tables.profile.of[p]);
      for (int32_t t : there) {
        if (tables.between(t, there.back()) < 0) return false;
      }
    }
  }
  return true;
}

SparseRest list_positive(const BatchGraph& graph) {
  const RowReader reader(graph);
  SparseRest rest;
  rest.offsets.push_back(0);
  std::vector<double> row;
  for (int64_t p = 0; p < graph.samples; ++p) {
    reader.read(p, row);
    for (int64_t q = 0; q < graph.samples; ++q) {
      if (row[q] <= 0) continue;
      rest.columns.push_back(static_cast<int32_t>(q));
      rest.weights.push_back(row[q]);
    }
    end_row(rest);
  }
  return rest;
}

// The correction to max(blocks, 0) at the entries of the rest.
SparseRest positive_rest(const BatchGraph& graph) {
  const SparseRest& from = graph.rest;
  SparseRest rest;
  if (from.offsets.empty()) return rest;
  rest.offsets.push_back(0);
  for (int64_t p = 0; p < graph.samples; ++p) {
    for (int64_t e = from.offsets[p]; e < from.offsets[p + 1]; ++e) {
      const double blocks = smooth_weight(graph, p, from.columns[e]);
      const double change = above_zero(blocks + from.weights[e]) - above_zero(blocks);
      if (change == 0) continue;
      rest.columns.push_back(from.columns[e]);
      rest.weights.push_back(change);
    }
    end_row(rest);
  }
  return rest;
}

}  // namespace

BatchGraph positive_part(const BatchGraph& graph) {
  if (!has_negative_weight(graph)) return graph;
  BatchGraph part;
  part.samples = graph.samples;
  part.views = graph.views;
  part.version = graph.version;
  const bool tables =
      std::any_of(graph.layers.begin(), graph.layers.end(), [](const BlockLayer& l) { return l.has_table(); });
  if (!graph.features.empty()) {
    const FeatureLayer& f = graph.features.front();
    if (graph.features.size() == 1 && f.width == 1 && f.weight > 0 && graph.layers.empty() &&
        graph.rest.offsets.empty()) {
      FeatureLayer above = f, below = f;  // a product is positive where the signs agree
      for (double& y : above.features) y = std::max(y, 0.0);
      for (double& y : below.features) y = std::min(y, 0.0);
      part.features = {std::move(above), std::move(below)};
      return part;
    }
  } else if (!tables) {
    part.layers = positive_layers(graph);
    part.rest = positive_rest(graph);
    if (part.layers.size() <= kMaxLayers) return part;
    part.layers.clear();
  } else if (TableProfiles profiles = table_profiles(graph); plain_layers_stay(graph, profiles)) {
    std::transform(profiles.table.begin(), profiles.table.end(), profiles.table.begin(), above_zero);
    part.layers.push_back({std::move(profiles.profile.of), profiles.profile.groups, 1.0, std::move(profiles.table)});
    for (const BlockLayer* layer : plain_layers(graph)) part.layers.push_back(*layer);
    part.rest = positive_rest(graph);
    return part;
  }
  part.rest = list_positive(graph);
  return part;
}

SparseRest negative_pairs(const BatchGraph& graph, const NegativeDraw& draw) {
  SparseRest rest;
  if (!has_negative_weight(graph)) return rest;
  const RowReader reader(graph);
  std::vector<std::tuple<int32_t, int32_t, double>> kept;  // p, q, G_pq, both ways
  std::vector<double> chance(graph.samples, 1), row;       // probability that p draws one of its pairs
  std::vector<int32_t> candidates;
  for (int64_t p = 0; p < graph.samples; ++p) {
    reader.read(p, row);
    candidates.clear();
    for (int64_t q = 0; q < graph.samples; ++q) {
      if (row[q] < 0) candidates.push_back(static_cast<int32_t>(q));
    }
    const auto count = static_cast<int64_t>(candidates.size());
    if (count > draw.per_row) {
      chance[p] = static_cast<double>(draw.per_row) / static_cast<double>(count);
      Random random(draw.seed, Purpose::negatives, draw.step, static_cast<uint64_t>(p));
      for (int64_t k = 0; k < draw.per_row; ++k)
        std::swap(candidates[k], candidates[k + static_cast<int64_t>(random.below(count - k))]);
      candidates.resize(draw.per_row);
    }
    const auto own = static_cast<int32_t>(p);
    for (int32_t q : candidates) {
      kept.emplace_back(own, q, row[q]);
      if (q != own) kept.emplace_back(q, own, row[q]);
    }
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());  // drawn by both ends: G is symmetric to the bit
  rest.offsets.push_back(0);
  size_t k = 0;
  for (int32_t p = 0; p < graph.samples; ++p) {
    for (; k < kept.size() && std::get<0>(kept[k]) == p; ++k) {
      const auto [own, q, w] = kept[k];
      rest.columns.push_back(q);
      rest.weights.push_back(w / (own == q ? chance[p] : 1 - (1 - chance[p]) * (1 - chance[q])));
    }
    end_row(rest);
  }
  return rest;
}

}  // namespace pal::graph
