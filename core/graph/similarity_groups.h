// similarity_groups: the groups of samples that are taken for alike where a representation is learned, by what may be deduced.
//
//   Deduction::on     the component of a sample
//   Deduction::once   its stars: samples answered to be like one and the same. One step and no further: a wrong answer spoils
//                     one sample, not a component.
//   Deduction::off    the samples of its label; answered pairs stand by themselves beside that
// A star: every answer "same" counts with one of its ends, the one with a label, else the one with more such answers, else the
// lower sample. That end is the center, and the star is the center with all that counts with it; the samples of one label are
// one star, whichever of them was asked about. A sample may lie in several. Two that were answered to be different are not
// alike, whatever star they share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/store.h"

namespace pal::graph {

// The stars of a sample, each once: that of a label first, then by the answers of the center, ties by the lower center. Empty
// when it has neither a label nor a partner.
std::vector<int64_t> groups_of(const GraphStore& store, int64_t sample);
constexpr int64_t group_of_label(int64_t label) { return 2 * label; }
constexpr int64_t group_about(int64_t center) { return 2 * center + 1; }

// Calls f(group) for every group of the sample, the first one first; not for a component of one.
template <class F>
void for_each_similarity_group(const GraphStore& store, int64_t sample, const F& f) {
  if (store.deduction() == Deduction::on) {
    if (store.component_size(sample) > 1) f(store.component(sample));
  } else if (store.deduction() == Deduction::off) {
    if (store.label(sample) >= 0) f(group_of_label(store.label(sample)));
  } else {
    for (int64_t star : groups_of(store, sample)) f(star);
  }
}

}  // namespace pal::graph
