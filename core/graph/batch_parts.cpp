#include "core/graph/batch_parts.h"

#include <algorithm>
#include <utility>

namespace pal::graph {

void RestBuilder::index() {
  numbers_.emplace(samples_.size());
  first_.assign(samples_.size(), -1);
  next_.assign(samples_.size(), -1);
  for (size_t k = samples_.size(); k > 0; --k) {  // backward, so that the lists ascend
    const auto p = static_cast<int32_t>(k - 1);
    next_[p] = std::exchange(first_[numbers_->number(samples_[p])], p);
  }
}

SparseRest RestBuilder::take() {
  SparseRest rest;
  if (entries_.empty()) return rest;
  // By pair; equal pairs stay in the order they came in, so that (p, q) and (q, p) sum to the same bits.
  std::stable_sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  rest.offsets.assign(samples_.size() + 1, 0);
  int32_t last_p = -1;
  for (const auto& [p, q, w] : entries_) {
    if (p == last_p && rest.columns.back() == q) {
      rest.weights.back() += w;
      continue;
    }
    last_p = p;
    rest.columns.push_back(q);
    rest.weights.push_back(w);
    ++rest.offsets[p + 1];
  }
  for (size_t p = 0; p < samples_.size(); ++p) rest.offsets[p + 1] += rest.offsets[p];
  entries_.clear();
  return rest;
}

// Negatives are found from the list of a component that is no hub, and from the bits of two hubs. So a component with a
// million negatives costs no more than the batch has components.
NegativeBlocks::NegativeBlocks(const GraphStore& store, const std::vector<int64_t>& samples)
    : store_(store), number_(samples.size()) {
  for (size_t p = 0; p < samples.size(); ++p) {
    const int64_t component = store.component(samples[p]);
    const int32_t c = number_.number(component);
    if (static_cast<size_t>(c) == id_.size()) {
      id_.push_back(component);
      positions_.emplace_back();
      hub_.push_back(store.hub(component));
    }
    positions_[c].push_back(static_cast<int32_t>(p));
  }
  dense_.assign(id_.size(), 0);
  find_dense_hubs();
}

int64_t NegativeBlocks::dense_hub(int64_t sample) const {
  const int64_t component = store_.component(sample);
  return dense_[number_.find(component)] ? component : -1;
}

// A dense hub costs an entry for each dense hub that it is not known to differ from, another hub one for each hub that
// it differs from. Fewer than three dense hubs are not worth two layers.
void NegativeBlocks::find_dense_hubs() {
  HubPairs::Row here, dense;
  std::vector<int32_t> hubs, members, of_hub;  // of_hub: hub → component of the batch
  for (int32_t c = 0; c < static_cast<int32_t>(id_.size()); ++c) {
    if (hub_[c] < 0 || store_.label(id_[c]) >= 0) continue;
    HubPairs::set(here, hub_[c]);
    hubs.push_back(c);
    of_hub.resize(std::max(of_hub.size(), static_cast<size_t>(hub_[c]) + 1));
    of_hub[hub_[c]] = c;
  }
  for (int32_t c : hubs) {
    int64_t others = 0;  // hubs that it is not known to differ from, itself included
    HubPairs::for_each_missing(store_.hubs().row(hub_[c]), here, [&](int32_t) { ++others; });
    if (2 * others > static_cast<int64_t>(hubs.size())) continue;
    HubPairs::set(dense, hub_[c]);
    members.push_back(c);
  }
  if (members.size() < 3) return;
  for (int32_t c : members) {
    dense_[c] = 1;
    HubPairs::for_each_missing(store_.hubs().row(hub_[c]), dense, [&](int32_t n) {
      if (c < of_hub[n]) unknown_pairs_.emplace_back(c, of_hub[n]);
    });
  }
}

// Pairs of the batch's components with an answer between them, without pairs of two dense hubs.
NegativeBlocks::Pairs NegativeBlocks::pairs_outside() const {
  const auto count = static_cast<int32_t>(id_.size());
  Pairs pairs;
  const auto found = [&](int32_t a, int32_t b) {
    if (store_.label(id_[a]) < 0 || store_.label(id_[b]) < 0) pairs.emplace_back(std::min(a, b), std::max(a, b));
  };
  HubPairs::Row hubs;
  std::vector<int32_t> of_hub;  // hub → component of the batch
  for (int32_t a = 0; a < count; ++a) {
    if (hub_[a] < 0) continue;
    HubPairs::set(hubs, hub_[a]);
    of_hub.resize(std::max(of_hub.size(), static_cast<size_t>(hub_[a]) + 1));
    of_hub[hub_[a]] = a;
  }
  for (int32_t a = 0; a < count; ++a) {
    if (hub_[a] < 0) {
      store_.for_each_negative(id_[a], [&](int64_t other) {
        const int32_t b = number_.find(other);
        if (b >= 0 && (hub_[b] >= 0 || a < b)) found(a, b);  // two lists hold the pair: count it once
      });
    } else if (!dense_[a]) {
      HubPairs::for_each_common(store_.hubs().row(hub_[a]), hubs, [&](int32_t n) {
        if (dense_[of_hub[n]] || a < of_hub[n]) found(a, of_hub[n]);
      });
    }
  }
  std::sort(pairs.begin(), pairs.end());  // after a merge a list may hold a component twice
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

void NegativeBlocks::add_to_rest(RestBuilder& rest, const Pairs& pairs, double weight) const {
  for (const auto& [a, b] : pairs) {
    for (int32_t p : positions_[a]) {
      for (int32_t q : positions_[b]) {
        rest.add_position(p, q, weight);
        rest.add_position(q, p, weight);
      }
    }
  }
}

void NegativeBlocks::add_pairs(BatchGraph& graph, RestBuilder& rest) const {
  add_to_rest(rest, unknown_pairs_, 1);
  const Pairs pairs = pairs_outside();
  std::vector<int32_t> block(id_.size(), -1);  // component → row of the table
  int64_t blocks = 0, entries = 0;
  for (const auto& [a, b] : pairs) {
    for (int32_t c : {a, b}) {
      if (block[c] < 0) block[c] = static_cast<int32_t>(blocks++);
    }
    entries += 2 * static_cast<int64_t>(positions_[a].size() * positions_[b].size());
  }
  if (blocks * blocks >= entries) {
    add_to_rest(rest, pairs, -1);
    return;
  }
  BlockLayer layer{std::vector<int32_t>(graph.samples, -1), static_cast<int32_t>(blocks), -1.0,
                   std::vector<double>(blocks * blocks, 0)};
  for (size_t c = 0; c < block.size(); ++c) {
    for (int32_t p : positions_[c]) layer.block[p] = block[c];
  }
  for (const auto& [a, b] : pairs)
    layer.table[block[a] * blocks + block[b]] = layer.table[block[b] * blocks + block[a]] = 1;
  graph.layers.push_back(std::move(layer));
}

}  // namespace pal::graph
