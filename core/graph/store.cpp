// store: union-find over samples, with the negatives of a component in a linked list that follows it through merges.
//
// The heavier component keeps its root, where a component's weight is its samples plus its negatives. So a walk to the
// root takes at most log2(weight) steps without path compression (find is const), and a negative is moved to another
// root at most as often.
#include "core/graph/store.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/base/error.h"

namespace pal {

GraphStore::GraphStore(int64_t samples) : components_(samples) {
  PAL_CHECK(samples >= 0 && samples < std::numeric_limits<int32_t>::max() / 2, "samples of a graph", samples,
            "give at most 2^30");
  parent_.assign(samples, -1);
  size_.assign(samples, 1);
  chain(static_cast<uint64_t>(samples));
}

// fingerprint ← mix(fingerprint + value): order matters, the union-find's layout does not.
void GraphStore::chain(uint64_t value) {
  uint64_t h = fingerprint_ * 0x9E3779B97F4A7C15ull + value + 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  fingerprint_ = h ^ (h >> 31);
}

void GraphStore::set_labels(const std::vector<int64_t>& labels) {
  PAL_ASSERT(version_ == 0, "labels are set once, before the first answer");
  PAL_DATA_CHECK(labels.size() == parent_.size(), "labels given", labels.size(),
                 "give one for each of the " + std::to_string(parent_.size()) + " samples");
  for (size_t i = 0; i < labels.size(); ++i) {
    PAL_DATA_CHECK(labels[i] >= -1, "label of sample " + std::to_string(i), labels[i], "labels are classes from 0, or −1 for unknown");
  }
  class_.assign(labels.size(), -1);
  std::unordered_map<int64_t, int32_t> roots;   // class → its first sample
  for (size_t i = 0; i < labels.size(); ++i) {
    chain(static_cast<uint64_t>(labels[i]));
    if (labels[i] < 0) continue;
    const auto [at, fresh] = roots.emplace(labels[i], static_cast<int32_t>(i));
    if (fresh) {
      class_[i] = static_cast<int32_t>(class_label_.size());
      class_label_.push_back(labels[i]);
    } else {
      parent_[i] = at->second;
      --parent_[at->second];
      ++size_[at->second];
      --components_;
    }
  }
  ++version_;
}

int32_t GraphStore::root(int64_t i) const {
  int32_t r = static_cast<int32_t>(i);
  while (parent_[r] >= 0) r = parent_[r];
  return r;
}

void GraphStore::check_sample(int64_t i) const {
  PAL_DATA_CHECK(i >= 0 && i < samples(), "sample of a relation", i, "samples are 0 to " + std::to_string(samples() - 1));
}

Relation GraphStore::relation(int64_t i, int64_t j) const {
  check_sample(i);
  check_sample(j);
  const int32_t a = root(i), b = root(j);
  if (a == b) return Relation::same;
  if (!class_.empty() && class_[a] >= 0 && class_[b] >= 0) return Relation::different;
  return different_.contains(a, b) ? Relation::different : Relation::unknown;
}

int64_t GraphStore::label(int64_t i) const {
  if (class_.empty()) return -1;
  const int32_t c = class_[root(i)];
  return c < 0 ? -1 : class_label_[c];
}

bool GraphStore::known(int64_t i) const {
  const int32_t r = root(i);
  return size_[r] > 1 || (!class_.empty() && class_[r] >= 0);
}

void GraphStore::insert(int64_t i, int64_t j, Relation relation) {
  PAL_ASSERT(relation != Relation::unknown, "an answer that is inserted says same or different");
  const Relation before = this->relation(i, j);
  PAL_DATA_CHECK(before == Relation::unknown || before == relation,
                 "answer against what is known of samples " + std::to_string(i) + " and " + std::to_string(j),
                 relation == Relation::same ? "same, known to be different" : "different, known to be the same",
                 "look the pair up and take one of the answers back");
  const auto [low, high] = std::minmax(i, j);
  chain(static_cast<uint64_t>(low));
  chain(static_cast<uint64_t>(high) << 2 | static_cast<uint64_t>(static_cast<int>(relation) + 1));
  ++version_;
  if (before != Relation::unknown) return;
  if (relation == Relation::same) {
    merge(root(i), root(j));
  } else {
    separate(root(i), root(j));
  }
}

void GraphStore::merge(int32_t a, int32_t b) {
  if (parent_[a] > parent_[b]) std::swap(a, b);   // a is the heavier
  parent_[a] += parent_[b];
  parent_[b] = a;
  size_[a] += size_[b];
  --components_;
  if (!class_.empty() && class_[a] < 0) class_[a] = class_[b];
  if (first_.empty()) return;
  for (int32_t n = first_[b]; n >= 0;) {
    const int32_t next = negatives_[n].next, other = root(negatives_[n].sample);
    different_.erase(b, other);
    if (different_.insert(a, other)) {   // else a knew it already: the entry is dropped
      negatives_[n].next = first_[a];
      first_[a] = n;
    }
    n = next;
  }
  first_[b] = -1;
}

void GraphStore::separate(int32_t a, int32_t b) {
  PAL_CHECK(negatives_.size() + 2 < static_cast<size_t>(std::numeric_limits<int32_t>::max() - samples()),
            "answers 'different' in the graph", negatives_.size() / 2, "split the data set");
  if (first_.empty()) first_.assign(parent_.size(), -1);
  different_.insert(a, b);
  link(a, b);
  link(b, a);
}

void GraphStore::link(int32_t a, int32_t b) {
  --parent_[a];
  negatives_.push_back({b, first_[a]});
  first_[a] = static_cast<int32_t>(negatives_.size()) - 1;
}

namespace {

// Block ids in order of first appearance, so that they depend on the batch alone.
template <class F>
BlockLayer make_layer(const std::vector<int64_t>& samples, double weight, const F& key) {
  BlockLayer layer;
  layer.weight = weight;
  layer.block.reserve(samples.size());
  std::unordered_map<int64_t, int32_t> ids;
  ids.reserve(samples.size());
  for (int64_t s : samples) {
    const int64_t k = key(s);
    layer.block.push_back(k < 0 ? -1 : ids.emplace(k, static_cast<int32_t>(ids.size())).first->second);
  }
  layer.blocks = static_cast<int32_t>(ids.size());
  return layer;
}

}  // namespace

BatchGraph build_batch_graph(const GraphStore& store, GraphKind kind, double alpha, const std::vector<int64_t>& samples,
                             int32_t views) {
  BatchGraph graph;
  graph.samples = static_cast<int64_t>(samples.size());
  graph.views = views;
  graph.version = store.version();
  for (int64_t s : samples) PAL_ASSERT(s >= 0 && s < store.samples(), "a batch holds samples of the data set");
  const auto own = [](int64_t s) { return s; };
  const auto component = [&](int64_t s) { return store.component(s); };
  const auto known_component = [&](int64_t s) { return store.known(s) ? store.component(s) : -1; };
  switch (kind) {
    case GraphKind::ssl:
      graph.layers.push_back(make_layer(samples, 1.0, own));
      break;
    case GraphKind::supervised:
      graph.layers.push_back(make_layer(samples, 1.0, component));
      break;
    case GraphKind::mixed:
      PAL_CHECK(alpha >= 0 && alpha <= 1, "graph.alpha", alpha, "give a number from 0 to 1");
      if (alpha < 1) graph.layers.push_back(make_layer(samples, 1 - alpha, own));
      if (alpha > 0) graph.layers.push_back(make_layer(samples, alpha, known_component));
      break;
  }
  return graph;
}

}  // namespace pal
