#include "core/graph/build.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/graph/batch_parts.h"
#include "core/graph/batch_rows.h"
#include "core/graph/similarity_groups.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::graph {
namespace {

// Block ids follow the order of first appearance, so that they depend on the batch alone. key: ≥ 0, or −1 for no block.
template <class F>
BlockLayer make_layer(const std::vector<int64_t>& samples, double weight, const F& key) {
  BlockLayer layer;
  layer.weight = weight;
  layer.block.reserve(samples.size());
  Numbering ids(samples.size());
  for (int64_t s : samples) {
    const int64_t k = key(s);
    layer.block.push_back(k < 0 ? -1 : ids.number(k));
  }
  layer.blocks = ids.size();
  return layer;
}

// Adds the layers of a kind, and the answered pairs when nothing is deduced from answers.
class Builder {
 public:
  Builder(const GraphStore& store, const std::vector<int64_t>& samples, BatchGraph& graph)
      : store_(store), samples_(samples), graph_(graph), rest_(samples) {}

  void own(double weight) {
    add(weight, [](int64_t s) { return s; });
  }
  void same(double weight) {
    if (store_.deduction() == Deduction::once) return groups(weight, Ungrouped::itself);
    add(weight, [&](int64_t s) { return block_of_same(s); });
    answers(Relation::same, weight);
  }
  void known_same(double weight) {
    if (store_.deduction() == Deduction::once) return groups(weight, Ungrouped::nothing);
    add(weight, [&](int64_t s) { return store_.known(s) ? block_of_same(s) : -1; });
    answers(Relation::same, weight);
  }
  void labeled(double weight) {
    add(weight, [&](int64_t s) { return store_.label(s) >= 0 ? 0 : -1; });
  }
  void classes(double weight) {
    add(weight, [&](int64_t s) { return store_.label(s); });
  }
  // Labeled samples: −1 between all of them, +2 inside a class. Dense hubs likewise. Other samples: +1 with their own
  // component, and −1 for answers "different".
  void signs() {
    labeled(-1);
    if (store_.deduction() == Deduction::once) {
      classes(1);  // the group of the label adds the other 1
      same(1);
      answers(Relation::different, -1);
      return;
    }
    classes(2);
    if (store_.deduction() == Deduction::off) {
      add(1, [&](int64_t s) { return store_.label(s) >= 0 ? -1 : block_of_same(s); });
      answers(Relation::same, 1);
      answers(Relation::different, -1);
      return;
    }
    const NegativeBlocks negatives(store_, samples_);
    add(-1, [&](int64_t s) { return negatives.dense_hub(s) >= 0 ? 0 : -1; });
    add(2, [&](int64_t s) { return negatives.dense_hub(s); });
    add(1, [&](int64_t s) { return store_.label(s) >= 0 || negatives.dense_hub(s) >= 0 ? -1 : store_.component(s); });
    negatives.add_pairs(graph_, rest_);
  }
  void table(const LossTable& table);
  void regression(const Targets& targets);
  void ranking(const Targets& targets);
  void finish() {
    const WeightedEdges& edges = store_.edges();
    if (!edges.empty()) {
      for (int64_t p = 0; p < graph_.samples; ++p) {
        for (int64_t e = edges.offsets()[samples_[p]]; e < edges.offsets()[samples_[p] + 1]; ++e) {
          rest_.add(p, edges.columns()[e], edges.weights()[e]);
        }
      }
    }
    graph_.rest = rest_.take();
  }

 private:
  // What a sample without a group is related to.
  enum class Ungrouped { nothing, itself };
  void groups(double weight, Ungrouped ungrouped);
  template <class F>
  void add(double weight, const F& key) {
    if (weight == 0) return;
    graph_.layers.push_back(make_layer(samples_, weight, key));
    if (graph_.layers.back().blocks == 0) graph_.layers.pop_back();
  }
  // Labels are even and samples odd, so that their keys differ.
  int64_t block_of_same(int64_t s) const {
    if (store_.deduction() == Deduction::on) return store_.component(s);
    return store_.label(s) >= 0 ? 2 * store_.label(s) : 2 * s + 1;
  }
  void answers(Relation relation, double weight) {
    if (store_.deduction() == Deduction::on || weight == 0) return;
    for (int64_t p = 0; p < graph_.samples; ++p) {
      store_.for_each_answer(samples_[p], [&](int64_t other, Relation answer) {
        if (answer == relation) rest_.add(p, other, weight);
      });
    }
  }

  const GraphStore& store_;
  const std::vector<int64_t>& samples_;
  BatchGraph& graph_;
  RestBuilder rest_;
};

// A layer holds the first group of each sample. The sparse rest adds the pairs of further groups, and removes the pairs
// that were answered to be different.
void Builder::groups(double weight, Ungrouped ungrouped) {
  if (weight == 0) return;
  std::unordered_map<int64_t, std::vector<int64_t>> of;  // sample → its groups
  std::map<int64_t, std::vector<int64_t>> further;  // groups that are not the first of a sample → their positions
  for (int64_t s : samples_) {
    const auto [at, fresh] = of.try_emplace(s);
    if (!fresh) continue;
    at->second = groups_of(store_, s);
    for (size_t k = 1; k < at->second.size(); ++k) further.try_emplace(at->second[k]);
  }
  add(weight, [&](int64_t s) {
    const std::vector<int64_t>& own = of.at(s);
    return !own.empty() ? own[0] : ungrouped == Ungrouped::itself ? group_about(s) : -1;
  });
  std::set<std::pair<int64_t, int64_t>> pairs;  // positions
  for (int64_t p = 0; p < graph_.samples && !further.empty(); ++p) {
    for (int64_t group : of.at(samples_[p])) {
      if (const auto at = further.find(group); at != further.end()) at->second.push_back(p);
    }
  }
  for (const auto& [group, there] : further) {
    for (int64_t p : there) {
      for (int64_t q : there) {
        if (of.at(samples_[p])[0] != of.at(samples_[q])[0]) pairs.emplace(p, q);
      }
    }
  }
  for (const auto& [p, q] : pairs) rest_.add_position(p, q, weight);
  for (int64_t p = 0; p < graph_.samples; ++p) {
    const std::vector<int64_t>& own = of.at(samples_[p]);
    store_.for_each_answer(samples_[p], [&](int64_t other, Relation answer) {
      const auto at = answer == Relation::different ? of.find(other) : of.end();
      if (at == of.end()) return;
      const std::vector<int64_t>& theirs = at->second;
      if (std::find_first_of(own.begin(), own.end(), theirs.begin(), theirs.end()) != own.end())
        rest_.add(p, other, -weight);
    });
  }
}

void Builder::table(const LossTable& table) {
  add(-1, [&](int64_t s) {
    const int64_t label = store_.label(s);
    PAL_DATA_CHECK(label < table.classes, "class without a row in graph.table, of sample " + std::to_string(s), label,
                   "the table has " + std::to_string(table.classes) + " classes, from 0");
    return label;
  });
  if (graph_.layers.empty()) return;  // no sample has a label
  BlockLayer& layer = graph_.layers.back();
  std::vector<int64_t> label(layer.blocks);
  for (int64_t p = 0; p < graph_.samples; ++p) {
    if (layer.block[p] >= 0) label[layer.block[p]] = store_.label(samples_[p]);
  }
  layer.table.reserve(label.size() * label.size());
  for (int64_t a : label) {
    for (int64_t b : label) layer.table.push_back(table.loss[a * table.classes + b]);
  }
}

void Builder::regression(const Targets& targets) {
  FeatureLayer layer{{}, targets.width, 1.0};
  for (int64_t s : samples_) {
    layer.features.insert(layer.features.end(), targets.values.begin() + s * targets.width,
                          targets.values.begin() + (s + 1) * targets.width);
  }
  graph_.features.push_back(std::move(layer));
}

// Math: one feature per pair of columns, ±1 by their order, makes agreeing minus disagreeing pairs an inner product. A
//   second feature lets two ties agree. −K = (product − 1) / 2.
void Builder::ranking(const Targets& targets) {
  const int64_t width = targets.width, pairs = width * (width - 1) / 2;
  PAL_ASSERT(pairs > 0, "a ranking orders two columns or more");
  FeatureLayer layer{{}, static_cast<int32_t>(2 * pairs), 0.5 / static_cast<double>(pairs)};
  layer.features.reserve(samples_.size() * 2 * pairs);
  for (int64_t s : samples_) {
    const double* y = targets.values.data() + s * width;
    for (int64_t a = 0; a < width; ++a) {
      for (int64_t b = 0; b < a; ++b) {
        layer.features.push_back(static_cast<double>((y[a] > y[b]) - (y[a] < y[b])));
        layer.features.push_back(y[a] == y[b] ? 1 : 0);
      }
    }
  }
  graph_.features.push_back(std::move(layer));
  add(-0.5, [](int64_t) { return 0; });
}

}  // namespace

BatchGraph build_batch_graph(const GraphStore& store, const GraphSpec& spec, const std::vector<int64_t>& samples,
                             int32_t views) {
  BatchGraph graph;
  graph.samples = static_cast<int64_t>(samples.size());
  graph.views = views;
  graph.version = store.version();
  for (int64_t s : samples) PAL_ASSERT(s >= 0 && s < store.samples(), "a batch holds samples of the data set");
  Builder builder(store, samples, graph);
  switch (spec.kind) {
    case GraphKind::ssl:
    case GraphKind::pairs:
      builder.own(1);
      break;
    case GraphKind::supervised:
      builder.same(1);
      break;
    case GraphKind::mixed:
      PAL_CHECK(spec.alpha >= 0 && spec.alpha <= 1, "graph.alpha", spec.alpha, "give a number from 0 to 1");
      builder.own(1 - spec.alpha);
      builder.known_same(spec.alpha);
      break;
    case GraphKind::signs:
      builder.signs();
      break;
    case GraphKind::table:
      if (spec.table) {
        builder.table(*spec.table);
      } else {  // zero-one: −1 between labeled samples, 0 inside a class
        builder.labeled(-1);
        builder.classes(1);
      }
      break;
    case GraphKind::regression:
      builder.regression(*spec.targets);
      break;
    case GraphKind::ranking:
      builder.ranking(*spec.targets);
      break;
  }
  builder.finish();
  return spec.missing > 0 ? with_missing_entries(graph, samples, spec.missing, spec.seed) : graph;
}

BatchGraph build_batch_graph(const GraphStore& store, GraphKind kind, double alpha, const std::vector<int64_t>& samples,
                             int32_t views) {
  GraphSpec spec;
  spec.kind = kind;
  spec.alpha = alpha;
  return build_batch_graph(store, spec, samples, views);
}

BatchGraph with_missing_entries(const BatchGraph& graph, const std::vector<int64_t>& samples, double probability,
                                uint64_t seed) {
  PAL_CHECK(probability >= 0 && probability <= 1, "graph.missing", probability, "give a probability from 0 to 1");
  BatchGraph left;
  left.samples = graph.samples;
  left.views = graph.views;
  left.version = graph.version;
  left.rest.offsets.push_back(0);
  const RowReader reader(graph);
  std::vector<double> row;
  for (int64_t p = 0; p < graph.samples; ++p) {
    reader.read(p, row);
    for (int64_t q = 0; q < graph.samples; ++q) {
      if (row[q] == 0) continue;
      const auto [low, high] = std::minmax(samples[p], samples[q]);
      if (low != high &&
          Random(seed, Purpose::missing, static_cast<uint64_t>(low), static_cast<uint64_t>(high)).next_double() <
              probability)
        continue;
      left.rest.columns.push_back(static_cast<int32_t>(q));
      left.rest.weights.push_back(row[q]);
    }
    left.rest.offsets.push_back(static_cast<int64_t>(left.rest.columns.size()));
  }
  return left;
}

void flip_weights(std::vector<WeightedPair>& pairs, double share, uint64_t seed) {
  if (share <= 0) return;
  for (WeightedPair& pair : pairs) {
    const auto [low, high] = std::minmax(pair.i, pair.j);
    Random random(seed, Purpose::flip, static_cast<uint64_t>(low), static_cast<uint64_t>(high));
    if (random.next_double() < share) pair.weight = -pair.weight;
  }
}

void redraw_labels(std::vector<int64_t>& labels, double share, uint64_t seed) {
  if (share <= 0) return;
  std::vector<int64_t> classes;
  for (int64_t label : labels) {
    if (label >= 0) classes.push_back(label);
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  for (size_t s = 0; s < labels.size(); ++s) {
    if (labels[s] < 0) continue;
    Random random(seed, Purpose::flip, 0, s, 1);
    if (random.next_double() < share) labels[s] = classes[random.below(classes.size())];
  }
}

}  // namespace pal::graph
