// batch_sums: sums over all pairs of a batch graph, row by row of positions, from counts of pairs.
//
// Math: a pair of positions (p, q) has the weight T(t_p, t_q) + Σ_{l ∈ S} w_l. t is the profile in the tables, S the
//   set of plain layers in which p and q share a block. For each p the pairs are counted by (t_q, S). The groups of a
//   set of layers count the pairs that agree in at least S; inclusion–exclusion over supersets gives exactly S.
// Counts are integers, so that opposite weights cancel exactly: a loss tests E = 0 to drop a term.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/graph/batch_rows.h"
#include "kernels/base/error.h"

namespace pal::graph {
namespace {

// The positions of each group of a set of layers, counted by profile.
struct SetCounts {
  Grouping group;
  std::vector<int64_t> begin;    // (groups + 1) into the lists
  std::vector<int32_t> profile;  // ascending within a group
  std::vector<double> positions;

  double at(int32_t g, int32_t t) const {
    const auto first = profile.begin() + begin[g], last = profile.begin() + begin[g + 1];
    const auto found = std::lower_bound(first, last, t);
    return found != last && *found == t ? positions[found - profile.begin()] : 0;
  }
};

SetCounts count_by_profile(Grouping group, const Grouping& profile) {
  SetCounts counts;
  if (profile.groups <= 1) {  // without tables a count per group is enough
    for (int32_t g = 0; g <= group.groups; ++g) counts.begin.push_back(g);
    counts.profile.assign(group.groups, 0);
    counts.positions.assign(group.groups, 0);
    for (int32_t g : group.of) {
      if (g >= 0) counts.positions[g] += 1;
    }
    counts.group = std::move(group);
    return counts;
  }
  std::vector<int64_t> keys;  // (group, profile) of each position, sorted
  for (size_t p = 0; p < group.of.size(); ++p) {
    if (group.of[p] >= 0) keys.push_back(static_cast<int64_t>(group.of[p]) * profile.groups + profile.of[p]);
  }
  std::sort(keys.begin(), keys.end());
  for (size_t k = 0; k < keys.size(); ++k) {
    if (k > 0 && keys[k] == keys[k - 1]) {
      counts.positions.back() += 1;
      continue;
    }
    const int64_t g = keys[k] / profile.groups;
    while (static_cast<int64_t>(counts.begin.size()) <= g)
      counts.begin.push_back(static_cast<int64_t>(counts.profile.size()));
    counts.profile.push_back(static_cast<int32_t>(keys[k] % profile.groups));
    counts.positions.push_back(1);
  }
  counts.begin.resize(static_cast<size_t>(group.groups) + 1, static_cast<int64_t>(counts.profile.size()));
  counts.group = std::move(group);
  return counts;
}

double layers_weight(const BatchGraph& graph, int64_t p, int64_t q) {
  double w = 0;
  for (const BlockLayer& layer : graph.layers) w += layer.between(p, q);
  return w;
}

// (samples) Σ_j f(G_ij) over rows j, from layers and rest; i is a row of the position. Requires f(0) = 0.
template <class F>
std::vector<double> layer_sums(const BatchGraph& graph, SelfLoops self_loops, const F& f) {
  const double views = graph.views, loop = self_loops == SelfLoops::off ? 1 : 0;
  const TableProfiles tables = table_profiles(graph);
  const std::vector<const BlockLayer*> plain = plain_layers(graph);
  std::vector<Grouping> intersections = intersections_of_sets(plain);
  std::vector<SetCounts> counts(intersections.size());
  std::vector<double> set_weight(intersections.size());
  for (unsigned s = 1; s < intersections.size(); ++s) {
    counts[s] = count_by_profile(std::move(intersections[s]), tables.profile);
    set_weight[s] = weight_of_set(plain, s);
  }
  std::vector<double> base(tables.profile.groups, 0);  // the sum from tables alone
  for (int32_t t = 0; t < tables.profile.groups && !tables.table.empty(); ++t) {
    for (int32_t u = 0; u < tables.profile.groups; ++u)
      base[t] += views * tables.positions[u] * f(tables.between(t, u));
  }
  std::vector<double> sums(graph.samples);
  for (int64_t p = 0; p < graph.samples; ++p) {
    const int32_t own = tables.profile.of[p];
    unsigned in = 0;  // plain layers in which p has a block
    for (size_t l = 0; l < plain.size(); ++l) in |= plain[l]->block[p] >= 0 ? 1u << l : 0;
    double sum = base[own];
    if (in == 0) sum -= loop * f(tables.between(own, own));
    for (unsigned s = in; s > 0; s = (s - 1) & in) {
      const int32_t g = counts[s].group.of[p];
      for (int64_t k = counts[s].begin[g]; k < counts[s].begin[g + 1]; ++k) {
        const int32_t t = counts[s].profile[k];
        double exactly = counts[s].positions[k];
        for (unsigned more = in & ~s, add = more; add > 0; add = (add - 1) & more) {
          const SetCounts& c = counts[s | add];
          exactly += (std::popcount(add) % 2 == 1 ? -1 : 1) * c.at(c.group.of[p], t);
        }
        const double rows = views * exactly, table = tables.between(own, t);
        sum += (rows - (s == in && t == own ? loop : 0)) * f(table + set_weight[s]) - rows * f(table);
      }
    }
    if (!graph.rest.offsets.empty()) {
      for (int64_t e = graph.rest.offsets[p]; e < graph.rest.offsets[p + 1]; ++e) {
        const double blocks = layers_weight(graph, p, graph.rest.columns[e]);
        sum += (views - (graph.rest.columns[e] == p ? loop : 0)) * (f(blocks + graph.rest.weights[e]) - f(blocks));
      }
    }
    sums[p] = sum;
  }
  return sums;
}

// The same for graphs with features, pair by pair.
template <class F>
std::vector<double> pair_sums(const BatchGraph& graph, SelfLoops self_loops, const F& f) {
  const RowReader reader(graph);
  std::vector<double> sums(graph.samples), row;
  for (int64_t p = 0; p < graph.samples; ++p) {
    reader.read(p, row);
    double sum = 0;
    for (double w : row) sum += f(w);
    sums[p] = graph.views * sum - (self_loops == SelfLoops::off ? f(row[p]) : 0);
  }
  return sums;
}

template <class F>
std::vector<double> row_sums(const BatchGraph& graph, SelfLoops self_loops, const F& f) {
  return graph.features.empty() ? layer_sums(graph, self_loops, f) : pair_sums(graph, self_loops, f);
}

double over_views(const BatchGraph& graph, const std::vector<double>& sums) {
  double all = 0;
  for (double s : sums) all += s;
  return graph.views * all;
}

// Σ_q over rows of the features' part of row p, from the sum of all features.
void add_feature_degrees(std::vector<double>& sums, const BatchGraph& graph, SelfLoops self_loops) {
  for (const FeatureLayer& f : graph.features) {
    std::vector<double> total(f.width, 0);
    for (size_t k = 0; k < f.features.size(); ++k) total[k % f.width] += graph.views * f.features[k];
    for (int64_t p = 0; p < graph.samples; ++p) {
      double sum = 0;
      for (int32_t k = 0; k < f.width; ++k) sum += f.features[p * f.width + k] * total[k];
      sums[p] += f.weight * sum - (self_loops == SelfLoops::off ? f.between(p, p) : 0);
    }
  }
}

// Σ_pq A_pq F_pq over positions, F = w f fᵀ, from the block sums of f.
double inner_product(const BlockLayer& layer, const FeatureLayer& f) {
  std::vector<double> sums(static_cast<size_t>(layer.blocks) * f.width, 0);
  for (size_t p = 0; p < layer.block.size(); ++p) {
    for (int32_t k = 0; k < f.width && layer.block[p] >= 0; ++k) {
      sums[static_cast<size_t>(layer.block[p]) * f.width + k] += f.features[p * f.width + k];
    }
  }
  const auto dot = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int32_t k = 0; k < f.width; ++k) sum += sums[a * f.width + k] * sums[b * f.width + k];
    return sum;
  };
  double product = 0;
  for (int64_t a = 0; a < layer.blocks; ++a) {
    if (!layer.has_table()) product += dot(a, a);
    for (int64_t b = 0; b < layer.blocks && layer.has_table(); ++b)
      product += layer.table[a * layer.blocks + b] * dot(a, b);
  }
  return layer.weight * f.weight * product;
}

// ‖fᵀg‖² w_f w_g: the sum over pq of the product of two feature layers.
double inner_product(const FeatureLayer& f, const FeatureLayer& g, int64_t samples) {
  double sum = 0;
  for (int32_t k = 0; k < f.width; ++k) {
    for (int32_t l = 0; l < g.width; ++l) {
      double dot = 0;
      for (int64_t p = 0; p < samples; ++p) dot += f.features[p * f.width + k] * g.features[p * g.width + l];
      sum += dot * dot;
    }
  }
  return f.weight * g.weight * sum;
}

}  // namespace

std::vector<double> degrees(const BatchGraph& graph, SelfLoops self_loops, Weights part) {
  switch (part) {
    case Weights::positive:
      return row_sums(graph, self_loops, [](double w) { return std::max(w, 0.0); });
    case Weights::absolute:
      return row_sums(graph, self_loops, [](double w) { return std::abs(w); });
    case Weights::all: {
      std::vector<double> sums = layer_sums(graph, self_loops, [](double w) { return w; });
      add_feature_degrees(sums, graph, self_loops);
      return sums;
    }
  }
  PAL_ASSERT(false, "every part of the weights has its sum");
}

PairCounts count_pairs(const BatchGraph& graph) {
  const auto above = [](double w) { return w > 0 ? 1.0 : 0.0; };
  const auto below = [](double w) { return w < 0 ? 1.0 : 0.0; };
  const std::vector<double> positive = row_sums(graph, SelfLoops::off, above), own = diagonal(graph);
  double partnered = 0;
  for (int64_t p = 0; p < graph.samples; ++p) {
    const double views = own[p] > 0 ? graph.views - 1 : 0;  // rows of the position itself
    partnered += positive[p] > views + 0.5 ? graph.views : 0;
  }
  return {over_views(graph, positive), over_views(graph, row_sums(graph, SelfLoops::off, below)), partnered};
}

double edge_mass(const BatchGraph& graph) {
  return over_views(graph, degrees(graph, SelfLoops::off, Weights::absolute));
}

double squared_norm(const BatchGraph& graph, SelfLoops self_loops) {
  const auto square = [](double w) { return w * w; };
  if (graph.features.empty()) return over_views(graph, layer_sums(graph, self_loops, square));
  double pairs = 0;  // over positions, of terms with a feature
  for (const FeatureLayer& f : graph.features) {
    for (const BlockLayer& layer : graph.layers) pairs += 2 * inner_product(layer, f);
    for (const FeatureLayer& g : graph.features) pairs += inner_product(f, g, graph.samples);
    for (int64_t p = 0; p + 1 < static_cast<int64_t>(graph.rest.offsets.size()); ++p) {
      for (int64_t e = graph.rest.offsets[p]; e < graph.rest.offsets[p + 1]; ++e) {
        pairs += 2 * graph.rest.weights[e] * f.between(p, graph.rest.columns[e]);
      }
    }
  }
  const double views = graph.views;
  double norm = over_views(graph, layer_sums(graph, SelfLoops::on, square)) + views * views * pairs;
  if (self_loops == SelfLoops::off) {
    for (double d : diagonal(graph)) norm -= views * d * d;
  }
  return norm;
}

bool has_negative_weight(const BatchGraph& graph) {
  const auto below = [](const std::vector<double>& values) {
    return std::any_of(values.begin(), values.end(), [](double w) { return w < 0; });
  };
  bool may = below(graph.rest.weights);
  for (const BlockLayer& layer : graph.layers) may = may || layer.weight < 0 || below(layer.table);
  for (const FeatureLayer& f : graph.features) may = may || f.weight < 0 || below(f.features);
  if (!may) return false;
  const std::vector<double> counts = row_sums(graph, SelfLoops::on, [](double w) { return w < 0 ? 1.0 : 0.0; });
  return std::any_of(counts.begin(), counts.end(), [](double c) { return c > 0; });
}

}  // namespace pal::graph
