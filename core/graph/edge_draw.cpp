#include "core/graph/edge_draw.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "kernels/base/philox.h"

namespace pal {

EdgeDraw::EdgeDraw(const GraphStore& store, const std::vector<int64_t>& trained) {
  std::vector<std::pair<int64_t, int64_t>> known;   // component, sample
  for (int64_t s : trained) {
    if (store.component_size(s) > 1) known.emplace_back(store.component(s), s);
  }
  std::sort(known.begin(), known.end());
  for (size_t first = 0, last = 0; first < known.size(); first = last) {
    while (last < known.size() && known[last].first == known[first].first) ++last;
    if (last - first < 2) continue;   // its partners are not trained on
    begin_.push_back(members());
    for (size_t k = first; k < last; ++k) {
      members_.push_back(known[k].second);
      group_.push_back(static_cast<int32_t>(begin_.size()) - 1);
    }
  }
  begin_.push_back(members());
}

void EdgeDraw::add_to(std::vector<int64_t>& batch, int64_t count, uint64_t seed, int64_t step) const {
  if (members_.empty()) return;
  std::unordered_set<int64_t> there(batch.begin(), batch.end());
  Random random(seed, Purpose::edges, static_cast<uint64_t>(step));
  for (int64_t drawn = 0; drawn < count; drawn += 2) {
    const auto one = static_cast<int64_t>(random.below(static_cast<uint64_t>(members())));
    const int64_t begin = begin_[group_[one]], others = begin_[group_[one] + 1] - begin - 1;
    int64_t other = begin + static_cast<int64_t>(random.below(static_cast<uint64_t>(others)));
    other += other >= one;
    if (there.insert(members_[one]).second) batch.push_back(members_[one]);
    if (drawn + 1 < count && there.insert(members_[other]).second) batch.push_back(members_[other]);
  }
}

}  // namespace pal
