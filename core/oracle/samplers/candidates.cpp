#include "core/oracle/samplers/candidates.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::oracle {

Candidates::Candidates(const graph::GraphStore& store, const Pool& pool, const Round& round, Templates templates)
    : store_(store), round_(round), pool_(pool) {
  std::unordered_set<int64_t> seen;
  for (size_t row = 0; row < pool_.samples().size(); ++row) {
    const int64_t sample = pool_.samples()[row], at = unit(sample);
    PAL_ASSERT(sample >= 0 && sample < store.samples(), "a pool holds samples of the data set");
    if (!seen.insert(at).second) continue;
    Random random(round.seed, Purpose::oracle, static_cast<uint64_t>(round.round), static_cast<uint64_t>(sample));
    points_.push_back({sample, at, static_cast<int64_t>(row), random.next_u64()});
  }
  if (templates != Templates::none) find_classes(templates);
  classify_rows();
  std::erase_if(points_, [&](const Point& p) { return row_class_[p.row] >= 0; });
  for (const Query& q : round.pending) {
    const auto at = class_of_unit_.find(unit(q.template_sample));
    if (at != class_of_unit_.end()) {
      classes_[at->second].known += static_cast<int64_t>(q.members.size());
    } else {
      taken_.insert(unit(q.template_sample));
    }
    for (int64_t m : q.members) taken_.insert(unit(m));
  }
}

void Candidates::find_classes(Templates templates) {
  const bool deduced = store_.deduction() == graph::Deduction::on;
  std::vector<PointClass> others;
  std::map<int64_t, PointClass> labeled;  // without deduction samples with the same label do not form a component
  for (int64_t i = 0; i < store_.samples(); ++i) {
    const int64_t label = store_.label(i);
    if (label >= 0 && !deduced) {
      ++labeled.try_emplace(label, PointClass{i, i, 0, label}).first->second.known;
    } else if (deduced && store_.component(i) == i) {
      if (label >= 0)
        classes_.push_back({i, i, store_.component_size(i), label});
      else if (store_.known(i))
        others.push_back({i, i, store_.component_size(i)});
    }
  }
  for (const auto& entry : labeled) classes_.push_back(entry.second);
  if (templates == Templates::discover) {
    for (const Point& p : points_) {
      if (!deduced ? store_.label(p.sample) < 0 : !store_.known(p.sample)) others.push_back({p.sample, p.unit, 1});
    }
    std::sort(others.begin(), others.end(), [](const PointClass& a, const PointClass& b) {
      return std::tie(b.known, a.sample) < std::tie(a.known, b.sample);
    });
    for (const PointClass& candidate : others) {
      const bool fresh = std::all_of(classes_.begin(), classes_.end(), [&](const PointClass& c) {
        return store_.relation(c.sample, candidate.sample) == graph::Relation::different;
      });
      if (fresh) classes_.push_back(candidate);
    }
  } else {
    PAL_CHECK(!classes_.empty(), "oracle.templates=given needs classes with a known sample, but there are none", "",
              "give labels (graph.labeled_fraction) or set oracle.templates=discover");
  }
  for (size_t c = 0; c < classes_.size(); ++c) {
    class_of_unit_[classes_[c].unit] = static_cast<int64_t>(c);
    if (classes_[c].label >= 0) class_of_label_[classes_[c].label] = static_cast<int64_t>(c);
  }
}

void Candidates::classify_rows() {
  row_class_.assign(pool_.samples().size(), -1);
  std::map<int64_t, int64_t> votes;
  for (size_t row = 0; row < pool_.samples().size(); ++row) {
    const int64_t sample = pool_.samples()[row];
    const auto at = class_of_unit_.find(unit(sample));
    if (at != class_of_unit_.end()) row_class_[row] = at->second;
    if (store_.deduction() == graph::Deduction::on || row_class_[row] >= 0) continue;
    if (const int64_t label = store_.label(sample); label >= 0) {
      const auto named = class_of_label_.find(label);  // none with Templates::none
      if (named != class_of_label_.end()) row_class_[row] = named->second;
      continue;
    }
    votes.clear();
    store_.for_each_answer(sample, [&](int64_t other, graph::Relation relation) {
      const auto named = class_of_unit_.find(other);
      if (named != class_of_unit_.end()) votes[named->second] += relation == graph::Relation::same ? 1 : -1;
    });
    int64_t most = 0;
    for (const auto& [c, count] : votes) {
      if (count > most) row_class_[row] = c, most = count;
    }
    if (row_class_[row] >= 0) ++classes_[row_class_[row]].known;
  }
}

at::Tensor Candidates::point_rows(const std::vector<int64_t>& points) const {
  std::vector<int64_t> rows;
  rows.reserve(points.size());
  for (int64_t p : points) rows.push_back(points_[p].row);
  return pool_.gather(rows);
}

std::vector<int64_t> Candidates::points_here(const std::vector<int64_t>& points) const {
  std::vector<int64_t> indices;
  for (size_t k = 0; k < points.size(); ++k) {
    if (pool_.place(points_[points[k]].row) >= 0) indices.push_back(static_cast<int64_t>(k));
  }
  return indices;
}

at::Tensor Candidates::rows_here(const std::vector<int64_t>& points, const std::vector<int64_t>& indices) const {
  std::vector<int64_t> places;
  places.reserve(indices.size());
  for (int64_t k : indices) places.push_back(pool_.place(points_[points[k]].row));
  return pool_.here().index_select(0, at::tensor(places, at::kLong));
}

std::vector<int64_t> Candidates::all_points() const {
  std::vector<int64_t> all(points_.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

const std::vector<int64_t>& Candidates::by_draw() const {
  if (by_draw_.size() == points_.size()) return by_draw_;
  by_draw_ = all_points();
  std::sort(by_draw_.begin(), by_draw_.end(),
            [&](int64_t a, int64_t b) { return std::pair(points_[a].draw, a) < std::pair(points_[b].draw, b); });
  return by_draw_;
}

std::vector<int64_t> Candidates::excluded(int64_t point) const {
  std::vector<int64_t> out;
  const auto add = [&](int64_t unit) {
    const auto at = class_of_unit_.find(unit);
    if (at != class_of_unit_.end()) out.push_back(at->second);
  };
  if (store_.deduction() == graph::Deduction::on) {
    store_.for_each_negative(points_[point].sample, add);
  } else {
    store_.for_each_answer(points_[point].sample, [&](int64_t other, graph::Relation) { add(other); });
  }
  const auto ruled = ruled_out_.find(points_[point].unit);
  if (ruled != ruled_out_.end()) out.insert(out.end(), ruled->second.begin(), ruled->second.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Candidates::open(int64_t point, int64_t c) const {
  if (!free(point) || store_.relation(points_[point].sample, classes_[c].sample) != graph::Relation::unknown)
    return false;
  const auto ruled = ruled_out_.find(points_[point].unit);
  return ruled == ruled_out_.end() || ruled->second.count(c) == 0;
}

}  // namespace pal::oracle
