#include "core/oracle/relation_count.h"

#include <algorithm>
#include <unordered_map>

#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

int64_t pairs_among(int64_t n) { return n * (n - 1) / 2; }

// Pairs of one label.
int64_t right_pairs(const std::unordered_map<int64_t, int64_t>& shares) {
  int64_t pairs = 0;
  for (const auto& [label, n] : shares) pairs += pairs_among(n);
  return pairs;
}

RelationCount count_answers(const graph::GraphStore& store, const std::vector<int64_t>& labels) {
  RelationCount out{store.answers(), 0, 0};
  for (int64_t k = 0; k < store.answers(); ++k) {
    const graph::Link link = store.answer(k);
    if (link.relation != graph::Relation::same) continue;
    ++out.alike;
    out.alike_wrong += !labels.empty() && labels[link.i] != labels[link.j];
  }
  return out;
}

}  // namespace

RelationCount count_relations(const graph::GraphStore& store, const std::vector<int64_t>& labels) {
  PAL_ASSERT(labels.empty() || static_cast<int64_t>(labels.size()) == store.samples(), "a label for each sample");
  if (store.deduction() != graph::Deduction::on) return count_answers(store, labels);
  RelationCount out;
  int64_t labeled = 0;
  std::unordered_map<int64_t, int64_t> of_label;  // by the store: those of two labels are known to differ
  std::vector<int64_t> others;
  for (int64_t i = 0; i < store.samples(); ++i) {
    if (store.component(i) != i) continue;
    const int64_t size = store.component_size(i), label = store.label(i);
    out.alike += pairs_among(size);
    if (label >= 0) labeled += size, of_label[label] += size;
    others.clear();
    store.for_each_negative(i, [&](int64_t other) {
      if (other > i && (label < 0 || store.label(other) < 0)) others.push_back(other);  // labels differ anyway
    });
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    for (int64_t other : others) out.known += size * store.component_size(other);
  }
  out.known += out.alike + pairs_among(labeled);
  for (const auto& [label, n] : of_label) out.known -= pairs_among(n);
  if (labels.empty()) return out;
  std::unordered_map<int64_t, std::unordered_map<int64_t, int64_t>> shares;  // component → true label → samples
  for (int64_t i = 0; i < store.samples(); ++i) {
    if (store.component_size(i) > 1) ++shares[store.component(i)][labels[i]];
  }
  out.alike_wrong = out.alike;
  for (const auto& [component, of] : shares) out.alike_wrong -= right_pairs(of);
  return out;
}

}  // namespace pal::oracle
