// similarity_groups: the groups of samples that training treats as the same.
//
//   Deduction::on     one group: the component of the sample
//   Deduction::once   the samples that were answered "same" with one common center. A wrong answer affects one sample,
//                     not a component.
//   Deduction::off    the samples of its label; answered pairs are added one by one
// Deduction::once in detail: each answer "same" belongs to one of its two samples, the center: the labeled one, else
//   the one with more such answers, else the lower id. A group is a center with the other ends of its answers. All
//   samples of one label form one group. A sample may lie in several groups. Two samples that were answered "different"
//   are not treated as the same, even inside one group.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/store.h"

namespace pal::graph {

// Deduction::once: the groups of a sample, each once. The group of a label comes first, then centers by descending
// number of answers, then by id. Empty for a sample without label and partner.
std::vector<int64_t> groups_of(const GraphStore& store, int64_t sample);
constexpr int64_t group_of_label(int64_t label) { return 2 * label; }
constexpr int64_t group_about(int64_t center) { return 2 * center + 1; }

// Calls f(group) for every group of the sample in the order of groups_of; a component of one sample is no group.
template <class F>
void for_each_similarity_group(const GraphStore& store, int64_t sample, const F& f) {
  if (store.deduction() == Deduction::on) {
    if (store.component_size(sample) > 1) f(store.component(sample));
  } else if (store.deduction() == Deduction::off) {
    if (store.label(sample) >= 0) f(group_of_label(store.label(sample)));
  } else {
    for (int64_t group : groups_of(store, sample)) f(group);
  }
}

}  // namespace pal::graph
