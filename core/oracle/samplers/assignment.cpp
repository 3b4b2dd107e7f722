// assignment: rows to moving centers (kmeans.h).

#include <ATen/Parallel.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/oracle/samplers/kmeans.h"
#include "core/oracle/samplers/products.h"
#include "kernels/base/error.h"
#include "kernels/base/vec.h"

namespace pal::oracle {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

const kernels::VecOps<float>& row_ops() { return kernels::vec_ops<float>(kernels::best_isa()); }

// f(i, s): the products s of row rows[i] with all `centers`, block by block.
template <class F>
void for_products(const at::Tensor& all, const std::vector<int64_t>& rows, const at::Tensor& centers, const F& f) {
  const auto count = static_cast<int64_t>(rows.size());
  const bool whole = count == all.size(0);  // ascending and distinct: then they are all rows
  for (int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
    const int64_t n = std::min(kRowsAtOnce, count - begin);
    const at::Tensor block =
        whole ? all.narrow(0, begin, n)
              : all.index_select(
                    0, at::tensor(at::ArrayRef<int64_t>(rows.data() + begin, static_cast<size_t>(n)), at::kLong));
    const at::Tensor products = times_transposed(block, centers);
    const float* const p = products.const_data_ptr<float>();
    at::parallel_for(0, n, 64, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) f(rows[begin + i], p + i * centers.size(0));
    });
  }
}

// The place of the largest, the first of equals, and the largest of the others (−∞: there are none).
struct TopTwo {
  int64_t best = 0;
  float first = 0, second = 0;
};

TopTwo top_two(const float* s, int64_t count) {
  constexpr int64_t kLanes = 16;  // side by side: they become vectors
  float first[kLanes], second[kLanes];
  std::fill_n(first, kLanes, -std::numeric_limits<float>::infinity());
  std::fill_n(second, kLanes, -std::numeric_limits<float>::infinity());
  const auto meet = [](float& one, float& two, float x) {
    const float less = x < one ? x : one;
    two = two < less ? less : two;
    one = one < x ? x : one;
  };
  int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) meet(first[k], second[k], s[c + k]);
  }
  for (; c < count; ++c) meet(first[0], second[0], s[c]);
  for (int64_t k = 1; k < kLanes; ++k) {
    meet(first[0], second[0], first[k]);
    meet(first[0], second[0], second[k]);
  }
  const int64_t best = std::find(s, s + count, first[0]) - s;
  return {best < count ? best : 0, first[0], second[0]};  // 0: nothing is a number
}

}  // namespace

Assignment::Assignment(at::Tensor rows)
    : rows_(std::move(rows)),
      center_(static_cast<size_t>(rows_.size(0)), -1),
      similarity_(center_.size(), 0),
      others_(center_.size(), 0),
      rounding_(static_cast<double>(rows_.size(1)) * 0x1p-23) {}

bool Assignment::update(const at::Tensor& centers) {
  const int64_t clusters = centers.size(0), dims = centers.size(1);
  const std::vector<int64_t> before = center_;
  if (!centers_.defined()) {
    centers_ = centers.clone();
    std::vector<int64_t> all(center_.size());
    std::iota(all.begin(), all.end(), int64_t{0});
    meet_all(all);
  } else {
    PAL_ASSERT(clusters == centers_.size(0), "as many centers as before");
    std::vector<double> moved(static_cast<size_t>(clusters));
    for (int64_t c = 0; c < clusters; ++c) {
      moved[c] = std::sqrt(row_ops().squared_distance(centers.const_data_ptr<float>() + c * dims,
                                                      centers_.const_data_ptr<float>() + c * dims, dims)) *
                 (1 + 1e-9);
    }
    centers_ = centers.clone();
    find_similarity();
    const Plan now = plan(moved);
    meet_all(now.meet_all);
    meet_all(meet_hot(now));
  }
  find_similarity();
  return center_ != before;
}

Assignment::Plan Assignment::plan(const std::vector<double>& moved) const {
  const auto n = static_cast<int64_t>(center_.size()), clusters = static_cast<int64_t>(moved.size());
  // ahead[i]: how far the other centers may have moved until the own one is no longer surely the nearest.
  std::vector<double> ahead(center_.size());
  for (int64_t i = 0; i < n; ++i) ahead[i] = similarity_[i] - others_[i] - 3 * rounding_;
  std::vector<int64_t> order(moved.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return moved[a] > moved[b]; });
  std::vector<double> sorted = ahead;
  std::sort(sorted.begin(), sorted.end());
  int64_t hot = 0, least = std::numeric_limits<int64_t>::max();
  for (int64_t h = 0; h <= clusters; ++h) {
    const double cold = h < clusters ? moved[order[h]] : 0;
    const int64_t all = std::upper_bound(sorted.begin(), sorted.end(), cold) - sorted.begin();
    const int64_t cost = all * clusters + (n - all) * h;
    if (cost < least) least = cost, hot = h;
    if (cold == 0) break;
  }
  Plan out;
  out.hot.assign(order.begin(), order.begin() + hot);
  std::sort(out.hot.begin(), out.hot.end());
  out.cold_moved = hot < clusters ? moved[order[hot]] : 0;
  for (int64_t i = 0; i < n; ++i)
    (ahead[i] > out.cold_moved ? out.meet_hot : out.meet_all).push_back(i);  // not a number: meets all
  return out;
}

void Assignment::meet_all(const std::vector<int64_t>& rows) {
  const int64_t clusters = centers_.size(0);
  products_ += static_cast<int64_t>(rows.size()) * clusters;
  for_products(rows_, rows, centers_, [&](int64_t i, const float* s) {
    const TopTwo top = top_two(s, clusters);
    center_[i] = top.best;
    others_[i] = static_cast<double>(top.second) + rounding_;
  });
}

std::vector<int64_t> Assignment::meet_hot(const Plan& plan) {
  for (int64_t i : plan.meet_hot) others_[i] += plan.cold_moved;
  if (plan.hot.empty()) return {};
  products_ += static_cast<int64_t>(plan.meet_hot.size() * plan.hot.size());
  std::vector<char> undecided(center_.size(), 0);
  for_products(
      rows_, plan.meet_hot, centers_.index_select(0, at::tensor(plan.hot, at::kLong)), [&](int64_t i, const float* s) {
        TopTwo top = top_two(s, static_cast<int64_t>(plan.hot.size()));
        const bool own_is_hot = std::binary_search(plan.hot.begin(), plan.hot.end(), center_[i]);
        if (plan.hot[top.best] == center_[i]) {
          others_[i] = std::max(others_[i], top.second + rounding_);
        } else if (top.first + 2 * rounding_ < similarity_[i]) {
          others_[i] = std::max(others_[i], top.first + rounding_);
        } else if (own_is_hot ||
                   top.first >
                       similarity_[i] + 2 * rounding_) {  // a hot center is nearer; the old one is one of the others
          others_[i] = std::max({others_[i], top.second + rounding_, similarity_[i] + rounding_});
          center_[i] = plan.hot[top.best];
        } else {
          undecided[i] = 1;
        }
      });
  std::vector<int64_t> out;
  for (int64_t i : plan.meet_hot) {
    if (undecided[i]) out.push_back(i);
  }
  return out;
}

void Assignment::find_similarity() {
  const int64_t dims = rows_.size(1);
  const float* const x = rows_.const_data_ptr<float>();
  const float* const c = centers_.const_data_ptr<float>();
  at::parallel_for(0, rows_.size(0), 256, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      similarity_[i] = static_cast<float>(row_ops().dot(x + i * dims, c + center_[i] * dims, dims));
  });
}

}  // namespace pal::oracle
