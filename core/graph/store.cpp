// store: union-find over samples. Each component has a linked list of its negatives; a merge moves the lighter list.
//
// The weight of a component is its samples plus its negatives, and the heavier component keeps its root. So a path to
// the root has at most log2(weight) steps without path compression (find is const), and a negative moves at most as
// often. Without deduction the lists hold the answers of single samples and never move.
#include "core/graph/store.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/base/error.h"

namespace pal::graph {

std::string to_string(const std::vector<Link>& chain) {
  constexpr size_t kEnds = 4;
  std::ostringstream text;
  for (size_t k = 0; k < chain.size(); ++k) {
    if (k == kEnds && chain.size() > 2 * kEnds + 1) {
      k = chain.size() - kEnds;
      text << ", … " << chain.size() - 2 * kEnds << " more …";
    }
    const Link& link = chain[k];
    text << (k > 0 ? ", " : "") << link.i << (link.relation == Relation::same ? " = " : " ≠ ") << link.j;
    if (link.answer == Link::kByLabels) {
      text << " (labels)";
    } else {
      text << " (answer " << link.answer << ")";
    }
  }
  return text.str();
}

GraphStore::GraphStore(int64_t samples, Deduction deduction) : deduction_(deduction) {
  PAL_CHECK(samples >= 0 && samples < std::numeric_limits<int32_t>::max() / 2, "samples of a graph", samples,
            "give at most 2^30");
  parent_.resize(samples);
  reset();
  chain(static_cast<uint64_t>(samples));
  if (deduction != Deduction::on) chain(deduction == Deduction::off ? 1 : 2);
}

// Back to a store without relations.
void GraphStore::reset() {
  const size_t n = parent_.size();
  parent_.assign(n, -1);
  size_.assign(n, 1);
  proofs_.reset(static_cast<int64_t>(n));
  different_ = {};
  same_ = {};
  first_.clear();
  links_.clear();
  partners_.clear();
  hubs_ = {};
  components_ = static_cast<int64_t>(n);
}

void GraphStore::set_labels(const std::vector<int64_t>& labels) { set_classes(labels); }

void GraphStore::set_groups(const std::vector<int64_t>& groups) {
  PAL_ASSERT(deduction_ == Deduction::on, "groups need deduction");
  classes_differ_ = false;
  chain(1);
  set_classes(groups);
}

void GraphStore::set_classes(const std::vector<int64_t>& labels) {
  PAL_ASSERT(answers_.empty() && own_class_.empty(), "labels are set once, before the first answer");
  PAL_DATA_CHECK(labels.size() == parent_.size(), "labels given", labels.size(),
                 "give one for each of the " + std::to_string(parent_.size()) + " samples");
  for (size_t i = 0; i < labels.size(); ++i) {
    PAL_DATA_CHECK(labels[i] >= -1, "label of sample " + std::to_string(i), labels[i],
                   "labels are classes from 0, or −1 for unknown");
  }
  own_class_.assign(labels.size(), -1);
  std::unordered_map<int64_t, int32_t> classes;
  for (size_t i = 0; i < labels.size(); ++i) {
    chain(static_cast<uint64_t>(labels[i]));
    if (labels[i] < 0) continue;
    const auto [at, fresh] = classes.emplace(labels[i], static_cast<int32_t>(class_label_.size()));
    own_class_[i] = at->second;
    if (!fresh) continue;
    class_label_.push_back(labels[i]);
    class_first_.push_back(static_cast<int32_t>(i));
  }
  join_labels();
  ++version_;
}

// Joins the samples of each class to its first sample.
void GraphStore::join_labels() {
  if (classes_differ_) class_.assign(own_class_.size(), -1);
  for (size_t i = 0; i < own_class_.size(); ++i) {
    if (own_class_[i] < 0) continue;
    const int32_t first = class_first_[own_class_[i]];
    if (static_cast<size_t>(first) == i) {
      if (classes_differ_) class_[i] = own_class_[i];
      continue;
    }
    proofs_.join(static_cast<int32_t>(i), first, ProofForest::kLabel);
    parent_[i] = first;
    --parent_[first];
    ++size_[first];
    --components_;
  }
}

void GraphStore::set_edges(WeightedEdges edges) {
  PAL_ASSERT(edges_.empty() && edges.samples() == samples(), "edges are set once, for the samples of the store");
  edges_ = std::move(edges);
  chain(edges_.fingerprint());
  ++version_;
}

int32_t GraphStore::root(int64_t i) const {
  int32_t r = static_cast<int32_t>(i);
  while (parent_[r] >= 0) r = parent_[r];
  return r;
}

// Path halving.
void GraphStore::shorten(int64_t i) {
  int32_t at = static_cast<int32_t>(i);
  while (parent_[at] >= 0 && parent_[parent_[at]] >= 0) {
    parent_[at] = parent_[parent_[at]];
    at = parent_[at];
  }
}

void GraphStore::check_sample(int64_t i) const {
  PAL_DATA_CHECK(i >= 0 && i < samples(), "sample of a relation", i,
                 "samples are 0 to " + std::to_string(samples() - 1));
}

Relation GraphStore::relation(int64_t i, int64_t j) const {
  check_sample(i);
  check_sample(j);
  const bool off = deduction_ != Deduction::on;
  const int32_t a = off ? static_cast<int32_t>(i) : root(i), b = off ? static_cast<int32_t>(j) : root(j);
  if (a == b) return Relation::same;
  const std::vector<int32_t>& classes = off ? own_class_ : class_;
  if (!classes.empty() && classes[a] >= 0 && classes[b] >= 0)
    return classes[a] == classes[b] ? Relation::same : Relation::different;
  if (off && same_.contains(a, b)) return Relation::same;
  return different_.contains(a, b) ? Relation::different : Relation::unknown;
}

int64_t GraphStore::label(int64_t i) const {
  if (class_.empty()) return -1;
  const int32_t c = deduction_ != Deduction::on ? own_class_[i] : class_[root(i)];
  return c < 0 ? -1 : class_label_[c];
}

bool GraphStore::known(int64_t i) const {
  const int32_t r = root(i);
  return size_[r] > 1 || (!class_.empty() && class_[r] >= 0);
}

Link GraphStore::answer(int64_t number) const {
  const Stored& a = answers_[number];
  return {a.i, a.j, static_cast<Relation>(a.relation), number};
}

void GraphStore::chain_pair(int64_t i, int64_t j, uint64_t what) {
  const auto [low, high] = std::minmax(i, j);
  chain(static_cast<uint64_t>(low));
  chain(static_cast<uint64_t>(high) << 2 | what);
}

void GraphStore::insert(int64_t i, int64_t j, Relation relation) {
  PAL_ASSERT(relation != Relation::unknown, "an inserted answer is same or different");
  check_sample(i);
  check_sample(j);
  shorten(i);
  shorten(j);
  const Relation before = this->relation(i, j);
  if (before != Relation::unknown && before != relation) {
    const std::vector<Link> because = explain(i, j);
    PAL_DATA_CHECK(
        false,
        "answer that contradicts the known relation of samples " + std::to_string(i) + " and " + std::to_string(j),
        std::string(relation == Relation::same ? "same, known to be different" : "different, known to be the same") +
            (because.empty() ? "" : " by " + to_string(because)),
        "check these pairs and remove one of the answers");
  }
  PAL_CHECK(answers_.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max() - samples()) / 2,
            "answers in the graph", answers_.size(), "split the data set");
  chain_pair(i, j, static_cast<uint64_t>(static_cast<int64_t>(relation) + 1));
  ++version_;
  answers_.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j), static_cast<int32_t>(relation)});
  if (before == Relation::unknown) apply(static_cast<int32_t>(answers_.size()) - 1);
}

int64_t GraphStore::remove(const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  PairSet removed;
  for (const auto& [i, j] : pairs) {
    check_sample(i);
    check_sample(j);
    if (i != j) removed.insert(static_cast<int32_t>(i), static_cast<int32_t>(j));
  }
  const auto gone = std::remove_if(answers_.begin(), answers_.end(),
                                   [&](const Stored& a) { return a.i != a.j && removed.contains(a.i, a.j); });
  const int64_t count = answers_.end() - gone;
  if (count == 0) return 0;
  answers_.erase(gone, answers_.end());
  for (const auto& [i, j] : pairs) chain_pair(i, j, 3);
  ++version_;
  reset();
  if (!own_class_.empty()) join_labels();
  for (size_t k = 0; k < answers_.size(); ++k) {
    if (relation(answers_[k].i, answers_[k].j) == Relation::unknown) apply(static_cast<int32_t>(k));
  }
  return count;
}

// Applies an answer whose relation was unknown.
void GraphStore::apply(int32_t answer) {
  const Stored a = answers_[answer];
  const auto relation = static_cast<Relation>(a.relation);
  if (deduction_ != Deduction::on) {
    (relation == Relation::same ? same_ : different_).insert(a.i, a.j);
    link(a.i, a.j, answer);
    link(a.j, a.i, answer);
    if (relation != Relation::same) return;
    partners_.resize(parent_.size());
    ++partners_[a.i];
    ++partners_[a.j];
    if (root(a.i) != root(a.j)) merge(a.i, a.j, answer);
  } else if (relation == Relation::same) {
    merge(a.i, a.j, answer);
  } else {
    const int32_t one = root(a.i), other = root(a.j);
    different_.insert(one, other);
    link(one, other, answer);
    link(other, one, answer);
    count_negative(one);
    count_negative(other);
    hubs_.mark(one, other);
  }
}

void GraphStore::merge(int32_t i, int32_t j, int32_t answer) {
  int32_t a = root(i), b = root(j);
  if (size_[a] < size_[b]) {
    proofs_.join(i, j, answer);
  } else {
    proofs_.join(j, i, answer);
  }
  if (parent_[a] > parent_[b]) std::swap(a, b);  // a is the heavier
  parent_[a] += parent_[b];
  parent_[b] = a;
  size_[a] += size_[b];
  --components_;
  if (!class_.empty() && class_[a] < 0) class_[a] = class_[b];
  if (first_.empty() || deduction_ != Deduction::on) return;
  const bool was_hub = hubs_.has(a);
  for (int32_t n = first_[b]; n >= 0;) {
    const int32_t next = links_[n].next, other = root(links_[n].sample);
    if (was_hub) hubs_.mark(a, other);
    different_.erase(b, other);
    if (different_.insert(a, other)) {  // else a has this negative already: drop the entry
      links_[n].next = first_[a];
      first_[a] = n;
    }
    n = next;
  }
  first_[b] = -1;
  if (hubs_.has(b)) hubs_.erase(b);
  if (!was_hub && negatives(a) >= HubPairs::kNegatives) add_hub(a);
}

void GraphStore::count_negative(int32_t root) {
  --parent_[root];
  if (negatives(root) == HubPairs::kNegatives) add_hub(root);
}

void GraphStore::add_hub(int32_t root) {
  hubs_.add(root);
  for_each_negative(root, [&](int64_t other) { hubs_.mark(root, static_cast<int32_t>(other)); });
}

void GraphStore::link(int32_t a, int32_t b, int32_t answer) {
  if (first_.empty()) first_.assign(parent_.size(), -1);
  links_.push_back({b, first_[a], answer});
  first_[a] = static_cast<int32_t>(links_.size()) - 1;
}

void GraphStore::append_path(std::vector<Link>& chain, int32_t i, int32_t j) const {
  for (const auto& edge : proofs_.path(i, j)) chain.push_back({edge.from, edge.to, Relation::same, edge.why});
}

std::vector<Link> GraphStore::explain(int64_t i, int64_t j) const {
  const Relation known = relation(i, j);
  std::vector<Link> chain;
  if (known == Relation::unknown || i == j) return chain;
  const auto from = static_cast<int32_t>(i), to = static_cast<int32_t>(j);
  if (deduction_ != Deduction::on) {
    chain.push_back({i, j, known, Link::kByLabels});
    if (first_.empty()) return chain;
    for (int32_t n = first_[i]; n >= 0; n = links_[n].next) {
      if (links_[n].sample == to) chain.back().answer = links_[n].answer;
    }
    return chain;
  }
  const int32_t a = root(i), b = root(j);
  if (a == b) {
    append_path(chain, from, to);
  } else if (!class_.empty() && class_[a] >= 0 && class_[b] >= 0) {
    // A path to a labeled sample on either side, without the step from it to its class's first sample.
    std::vector<Link> left, right;
    append_path(left, from, class_first_[class_[a]]);
    append_path(right, class_first_[class_[b]], to);
    int64_t one = class_first_[class_[a]], other = class_first_[class_[b]];
    if (!left.empty() && left.back().answer == Link::kByLabels) {
      one = left.back().i;
      left.pop_back();
    }
    if (!right.empty() && right.front().answer == Link::kByLabels) {
      other = right.front().j;
      right.erase(right.begin());
    }
    chain = std::move(left);
    chain.push_back({one, other, Relation::different, Link::kByLabels});
    chain.insert(chain.end(), right.begin(), right.end());
  } else {
    const bool from_left = negatives(a) <= negatives(b);  // the shorter list
    for (int32_t n = first_[from_left ? a : b]; n >= 0; n = links_[n].next) {
      if (root(links_[n].sample) != (from_left ? b : a)) continue;
      Link split = answer(links_[n].answer);
      if (root(split.i) != a) std::swap(split.i, split.j);
      append_path(chain, from, static_cast<int32_t>(split.i));
      chain.push_back(split);
      append_path(chain, static_cast<int32_t>(split.j), to);
      break;
    }
  }
  return chain;
}

}  // namespace pal::graph
