#include "core/graph/batch_rows.h"

#include "core/graph/batch_parts.h"
#include "kernels/base/error.h"

namespace pal::graph {
namespace {

// Keys ≥ 0 numbered in the order of their first appearance; −1 stays −1.
Grouping number_keys(const std::vector<int64_t>& keys) {
  Grouping grouped;
  grouped.of.reserve(keys.size());
  Numbering number(keys.size());
  for (int64_t k : keys) grouped.of.push_back(k < 0 ? -1 : number.number(k));
  grouped.groups = number.size();
  return grouped;
}

}  // namespace

Grouping intersection(const Grouping& a, const Grouping& b) {
  std::vector<int64_t> keys(a.of.size());
  for (size_t p = 0; p < keys.size(); ++p) {
    keys[p] = a.of[p] < 0 || b.of[p] < 0 ? -1 : static_cast<int64_t>(a.of[p]) * b.groups + b.of[p];
  }
  return number_keys(keys);
}

Grouping grouping(const BlockLayer& layer) {
  Grouping grouped;
  grouped.of.reserve(layer.block.size());
  std::vector<int32_t> number(layer.blocks, -1);
  for (int32_t b : layer.block) {
    if (b >= 0 && number[b] < 0) number[b] = grouped.groups++;
    grouped.of.push_back(b < 0 ? -1 : number[b]);
  }
  return grouped;
}

std::vector<const BlockLayer*> plain_layers(const BatchGraph& graph) {
  std::vector<const BlockLayer*> plain;
  for (const BlockLayer& layer : graph.layers) {
    if (!layer.has_table()) plain.push_back(&layer);
  }
  PAL_ASSERT(plain.size() <= kMaxLayers, "a batch graph has few layers");
  return plain;
}

double weight_of_set(const std::vector<const BlockLayer*>& plain, unsigned set) {
  double weight = 0;
  for (size_t l = 0; l < plain.size(); ++l) {
    if (set >> l & 1u) weight += plain[l]->weight;
  }
  return weight;
}

std::vector<Grouping> intersections_of_sets(const std::vector<const BlockLayer*>& plain) {
  std::vector<Grouping> intersections(size_t{1} << plain.size());
  for (unsigned set = 1; set < intersections.size(); ++set) {
    const unsigned others = set & (set - 1);
    const Grouping lowest = grouping(*plain[static_cast<size_t>(__builtin_ctz(set))]);
    intersections[set] = others == 0 ? lowest : intersection(lowest, intersections[others]);
  }
  return intersections;
}

TableProfiles table_profiles(const BatchGraph& graph) {
  TableProfiles profiles;
  Grouping& profile = profiles.profile;
  profile = {std::vector<int32_t>(graph.samples, 0), graph.samples > 0 ? 1 : 0};
  std::vector<const BlockLayer*> tables;
  for (const BlockLayer& layer : graph.layers) {
    if (!layer.has_table()) continue;
    tables.push_back(&layer);
    Grouping blocks = grouping(layer);
    for (int32_t& b : blocks.of) b += 1;  // "no block" counts as a block here
    blocks.groups += 1;
    profile = intersection(profile, blocks);
  }
  profiles.positions.assign(profile.groups, 0);
  std::vector<int64_t> member(profile.groups);
  for (int64_t p = 0; p < graph.samples; ++p) {
    profiles.positions[profile.of[p]] += 1;
    member[profile.of[p]] = p;
  }
  if (tables.empty()) return profiles;
  profiles.table.assign(static_cast<size_t>(profile.groups) * profile.groups, 0);
  for (const BlockLayer* layer : tables) {
    double* out = profiles.table.data();
    for (int64_t p : member) {
      for (int64_t q : member) *out++ += layer->between(p, q);
    }
  }
  return profiles;
}

RowReader::RowReader(const BatchGraph& graph) : graph_(graph) {
  for (const FeatureLayer& f : graph.features) {
    std::vector<double> columns(f.features.size());
    for (int64_t p = 0; p < graph.samples; ++p) {
      for (int32_t k = 0; k < f.width; ++k) columns[k * graph.samples + p] = f.features[p * f.width + k];
    }
    columns_.push_back(std::move(columns));
  }
}

void RowReader::read(int64_t p, std::vector<double>& row) const {
  const int64_t n = graph_.samples;
  row.assign(n, 0);
  for (const BlockLayer& layer : graph_.layers) {
    const int32_t own = layer.block[p];
    if (own < 0) continue;
    if (layer.has_table()) {
      const double* b = layer.table.data() + static_cast<int64_t>(own) * layer.blocks;
      for (int64_t q = 0; q < n; ++q) row[q] += layer.block[q] < 0 ? 0 : layer.weight * b[layer.block[q]];
    } else {
      for (int64_t q = 0; q < n; ++q) row[q] += layer.block[q] == own ? layer.weight : 0;
    }
  }
  for (size_t l = 0; l < columns_.size(); ++l) {
    const FeatureLayer& f = graph_.features[l];
    for (int32_t k = 0; k < f.width; ++k) {
      const double own = f.features[p * f.width + k];
      const double* column = columns_[l].data() + k * n;
      for (int64_t q = 0; q < n; ++q) row[q] += f.weight * (own * column[q]);  // (q, p) gets the same bits
    }
  }
  if (graph_.rest.offsets.empty()) return;
  for (int64_t e = graph_.rest.offsets[p]; e < graph_.rest.offsets[p + 1]; ++e)
    row[graph_.rest.columns[e]] += graph_.rest.weights[e];
}

}  // namespace pal::graph
