#include "core/graph/edge_draw.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "core/graph/similarity_groups.h"
#include "kernels/base/philox.h"

namespace pal::graph {

EdgeDraw::EdgeDraw(const GraphStore& store, const std::vector<int64_t>& trained)
    : trained_(static_cast<int64_t>(trained.size())) {
  std::vector<std::pair<int64_t, int64_t>> known;  // group, sample
  for (int64_t s : trained) for_each_similarity_group(store, s, [&](int64_t group) { known.emplace_back(group, s); });
  std::sort(known.begin(), known.end());
  for (size_t first = 0, last = 0; first < known.size(); first = last) {
    while (last < known.size() && known[last].first == known[first].first) ++last;
    if (last - first < 2) continue;  // no partner is trained on
    begin_.push_back(static_cast<int64_t>(members_.size()));
    for (size_t k = first; k < last; ++k) {
      members_.push_back(known[k].second);
      group_.push_back(static_cast<int32_t>(begin_.size()) - 1);
    }
  }
  begin_.push_back(static_cast<int64_t>(members_.size()));
  add_partners(store, trained);
  count_chances(store.samples());
}

void EdgeDraw::count_chances(int64_t samples) {
  if (members() == 0) return;
  first_.assign(samples, 0);
  second_.assign(samples, 0);
  for (int64_t s : members_) {  // inside a group all partners are equally likely
    first_[s] += 1;
    second_[s] += 1;
  }
  for (size_t k = 0; k < linked_.size(); ++k) {
    first_[linked_[k]] += 1;
    const int64_t begin = partner_begin_[k], end = partner_begin_[k + 1];
    for (int64_t e = begin; e < end; ++e)
      second_[partners_[e]] += static_cast<float>(1.0 / static_cast<double>(end - begin));
  }
}

void EdgeDraw::add_partners(const GraphStore& store, const std::vector<int64_t>& trained) {
  const WeightedEdges& edges = store.edges();
  if (edges.empty() && store.deduction() != Deduction::off) return;
  std::vector<char> here(store.samples(), 0);
  for (int64_t s : trained) here[s] = 1;
  for (int64_t s : trained) {
    const auto before = static_cast<int64_t>(partners_.size());
    const auto add = [&](int64_t other) {
      if (other != s && here[other]) partners_.push_back(other);
    };
    for (int64_t e = edges.empty() ? 0 : edges.offsets()[s]; e < (edges.empty() ? 0 : edges.offsets()[s + 1]); ++e)
      add(edges.columns()[e]);
    if (store.deduction() == Deduction::off) {
      store.for_each_answer(s, [&](int64_t other, Relation answer) {
        if (answer == Relation::same) add(other);
      });
    }
    if (static_cast<int64_t>(partners_.size()) == before) continue;
    linked_.push_back(s);
    partner_begin_.push_back(before);
  }
  partner_begin_.push_back(static_cast<int64_t>(partners_.size()));
}

double EdgeDraw::meets_by_chance(int64_t batch) const {
  if (trained_ < 2) return 0;
  std::vector<int64_t> partners(first_.size(), 0);
  for (size_t k = 0; k < members_.size(); ++k) partners[members_[k]] += begin_[group_[k] + 1] - begin_[group_[k]] - 1;
  for (size_t k = 0; k < linked_.size(); ++k) partners[linked_[k]] += partner_begin_[k + 1] - partner_begin_[k];
  const double here = std::min(1.0, static_cast<double>(batch - 1) / static_cast<double>(trained_ - 1));
  double met = 0;
  for (int64_t count : partners) met += 1 - std::pow(1 - here, static_cast<double>(count));
  return met / static_cast<double>(trained_);
}

void EdgeDraw::add_to(std::vector<int64_t>& batch, int64_t count, uint64_t seed, int64_t step) const {
  if (members() == 0) return;
  std::unordered_set<int64_t> there(batch.begin(), batch.end());
  Random random(seed, Purpose::edges, static_cast<uint64_t>(step));
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(n))); };
  const auto grouped = static_cast<int64_t>(members_.size());
  for (int64_t drawn = 0; drawn < count; drawn += 2) {
    const int64_t one = below(members());
    int64_t sample = 0, partner = 0;
    if (one < grouped) {
      const int64_t begin = begin_[group_[one]], others = begin_[group_[one] + 1] - begin - 1;
      int64_t other = begin + below(others);
      other += other >= one;
      sample = members_[one];
      partner = members_[other];
    } else {
      const int64_t begin = partner_begin_[one - grouped];
      sample = linked_[one - grouped];
      partner = partners_[begin + below(partner_begin_[one - grouped + 1] - begin)];
    }
    if (there.insert(sample).second) batch.push_back(sample);
    if (drawn + 1 < count && there.insert(partner).second) batch.push_back(partner);
  }
}

double EdgeDraw::inclusion(int64_t sample, int64_t count, double epoch_share) const {
  if (members() == 0) return epoch_share;
  const double each = 1.0 / static_cast<double>(members());
  const double never = std::pow(1 - (first_[sample] + second_[sample]) * each, static_cast<double>(count / 2)) *
                       (count % 2 == 0 ? 1 : 1 - first_[sample] * each);
  return 1 - (1 - epoch_share) * never;
}

}  // namespace pal::graph
