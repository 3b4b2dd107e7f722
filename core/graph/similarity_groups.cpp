#include "core/graph/similarity_groups.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pal::graph {

std::vector<int64_t> groups_of(const GraphStore& store, int64_t sample) {
  if (const int64_t label = store.label(sample); label >= 0) return {group_of_label(label)};
  const int64_t own = store.partners(sample);
  if (own == 0) return {};
  std::vector<std::pair<int64_t, int64_t>> found;  // −answers of the center, group
  store.for_each_answer(sample, [&](int64_t other, Relation answer) {
    if (answer != Relation::same) return;
    const int64_t label = store.label(other), partners = store.partners(other);
    const bool theirs = std::pair(-partners, other) < std::pair(-own, sample);
    const auto group = label >= 0 ? std::pair(std::numeric_limits<int64_t>::min(), group_of_label(label))
                                  : std::pair(-std::max(partners, own), group_about(theirs ? other : sample));
    if (found.empty() || found.back() != group) found.push_back(group);
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<int64_t> groups;
  for (const auto& [order, group] : found) groups.push_back(group);
  return groups;
}

}  // namespace pal::graph
