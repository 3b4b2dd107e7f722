// negative_blocks: who finds the pairs. A component with fewer negatives than the batch has components walks its list; two
// with longer lists are looked up. So a template that a million answers tell apart costs no more than the batch.
#include "core/graph/negative_blocks.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace pal {
namespace {

struct BatchComponents {
  std::vector<int64_t> id;                       // → component of the store
  std::vector<std::vector<int32_t>> positions;
  std::unordered_map<int64_t, int32_t> number;   // component → index here
};

BatchComponents components_of(const GraphStore& store, const std::vector<int64_t>& samples) {
  BatchComponents of;
  of.number.reserve(samples.size());
  for (size_t p = 0; p < samples.size(); ++p) {
    const auto [at, fresh] = of.number.emplace(store.component(samples[p]), static_cast<int32_t>(of.id.size()));
    if (fresh) {
      of.id.push_back(at->first);
      of.positions.emplace_back();
    }
    of.positions[at->second].push_back(static_cast<int32_t>(p));
  }
  return of;
}

// Pairs a < b of the batch's components with an answer between them.
std::vector<std::pair<int32_t, int32_t>> negative_component_pairs(const GraphStore& store, const BatchComponents& of) {
  const auto count = static_cast<int32_t>(of.id.size());
  const auto labels_tell = [&](int64_t a, int64_t b) { return store.label(a) >= 0 && store.label(b) >= 0; };
  std::vector<char> is_long(count);
  std::vector<int32_t> long_ones;
  for (int32_t a = 0; a < count; ++a) {
    is_long[a] = store.negatives(of.id[a]) > count;
    if (is_long[a]) long_ones.push_back(a);
  }
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t a = 0; a < count; ++a) {
    if (is_long[a]) continue;
    store.for_each_negative(of.id[a], [&](int64_t other) {
      const auto at = of.number.find(other);
      if (at == of.number.end() || labels_tell(of.id[a], other)) return;
      const int32_t b = at->second;
      if (is_long[b] || a < b) pairs.emplace_back(std::min(a, b), std::max(a, b));   // two short ones: once
    });
  }
  for (size_t x = 0; x < long_ones.size(); ++x) {
    for (size_t y = x + 1; y < long_ones.size(); ++y) {
      const int64_t a = of.id[long_ones[x]], b = of.id[long_ones[y]];
      if (!labels_tell(a, b) && store.relation(a, b) == Relation::different) pairs.emplace_back(long_ones[x], long_ones[y]);
    }
  }
  std::sort(pairs.begin(), pairs.end());   // a list may name a component twice, after a merge of others
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace

void add_negative_blocks(const GraphStore& store, const std::vector<int64_t>& samples, BatchGraph& graph, RestBuilder& rest) {
  const BatchComponents of = components_of(store, samples);
  const auto pairs = negative_component_pairs(store, of);
  std::vector<int32_t> block(of.id.size(), -1);   // component → row of the table
  int64_t blocks = 0, entries = 0;
  for (const auto& [a, b] : pairs) {
    for (int32_t c : {a, b}) {
      if (block[c] < 0) block[c] = static_cast<int32_t>(blocks++);
    }
    entries += 2 * static_cast<int64_t>(of.positions[a].size() * of.positions[b].size());
  }
  if (blocks * blocks >= entries) {
    for (const auto& [a, b] : pairs) {
      for (int32_t p : of.positions[a]) {
        for (int32_t q : of.positions[b]) {
          rest.add_position(p, q, -1);
          rest.add_position(q, p, -1);
        }
      }
    }
    return;
  }
  BlockLayer layer{std::vector<int32_t>(samples.size(), -1), static_cast<int32_t>(blocks), -1.0, std::vector<double>(blocks * blocks, 0)};
  for (size_t c = 0; c < block.size(); ++c) {
    for (int32_t p : of.positions[c]) layer.block[p] = block[c];
  }
  for (const auto& [a, b] : pairs) layer.table[block[a] * blocks + block[b]] = layer.table[block[b] * blocks + block[a]] = 1;
  graph.layers.push_back(std::move(layer));
}

}  // namespace pal
