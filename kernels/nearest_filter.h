// nearest_filter: products in T that exclude pairs that cannot be among the nearest, so that few need an exact score.
//
// Let e = ‖x − y‖² (euclidean), or that of x/‖x‖ and y/‖y‖, which is 2 − 2 cos. With x', y' = scale · x − center
// rounded to T, and s their product in T:  e ≥ (1 − ε)(‖x'‖² + ‖y'‖²) − σ(‖x'‖ + ‖y'‖) − 2s,  where
//   ε: the product is a chain of fused additions (kPanelRun, then the runs), the squares a shorter one; rounding x'
//      and y' moves their distance by at most u(‖x'‖ + ‖y'‖), u half a unit in the last place of 1;
//   σ: the scale of a cosine is rounded as well: 6u of distance, whatever the center takes off.
// A pair is excluded when that bound exceeds the k-th best e so far, that is when 2s − low_y < high_x. The center, near
// the mean of the support, changes no result; it keeps the bound tight where means are large and distances are small.
// Rows without a usable bound (NaN, overflow) get −∞ there, and exact scores always. A zero row under a cosine has a
// distance below its e = 2 to anything: the bound holds.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/base/panels.h"
#include "kernels/base/vec.h"
#include "kernels/nearest.h"
#include "kernels/nearest_impl.h"

namespace pal::kernels::cpu {

template <class T>
T round_down(double v) {
  const T r = static_cast<T>(v);
  return static_cast<double>(r) > v ? std::nextafter(r, -std::numeric_limits<T>::infinity()) : r;
}

template <class T>
class NearestFilter {
 public:
  NearestFilter(Metric metric, const T* center, int64_t dims, Isa isa)
      : metric_(metric),
        center_(center),
        dims_(dims),
        ops_(nearest_ops<T>(isa)),
        vec_(vec_ops<T>(isa)),
        pack_(pack_ops<T, T>(isa)) {
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2, wide = 0x1p-52;
    const double runs = static_cast<double>((dims + kPanelRun - 1) / kPanelRun);
    keep_ = 1 - 1.01 * unit * (2 * kPanelRun + runs);
    sigma_ = metric == Metric::cosine ? 16 * unit : 0;
    score_slack_ = (static_cast<double>(dims) + 16) * 2 * wide;
  }

  // One panel of rows.
  struct Rows {
    const T* data;
    int64_t stride, count;
    double norm[kMaxPanelWidth<T>];    // ‖y‖ in fp64, of a cosine
    double square[kMaxPanelWidth<T>];  // ‖y'‖², complete after the last run
    T scale[kMaxPanelWidth<T>];
  };
  Rows begin(MatrixView<const T> rows, int64_t first, int64_t width) const {
    Rows r{rows.row(first), rows.stride, std::min(width, rows.rows - first), {}, {}, {}};
    for (int64_t i = 0; i < r.count; ++i) {
      const T* row = r.data + i * r.stride;
      r.norm[i] = metric_ == Metric::cosine ? std::sqrt(vec_.dot(row, row, dims_)) : 1.0;
      r.scale[i] = r.norm[i] == 0 ? T{0} : static_cast<T>(1 / r.norm[i]);
    }
    return r;
  }
  // Packs x' of columns [k, k + depth), depth ≤ kPanelRun, as (depth, width).
  void pack_run(T* panel, Rows& r, int64_t k, int64_t depth) const {
    alignas(64) T centered[kMaxPanelWidth<T> * kPanelRun];
    for (int64_t i = 0; i < r.count; ++i) {
      r.square[i] += ops_.center(centered + i * kPanelRun, r.data + i * r.stride + k, r.scale[i], center_ + k, depth);
    }
    pack_.turn(panel, centered, kPanelRun, depth, r.count, nullptr);
  }

  // (1 − ε) ‖x'‖² − σ ‖x'‖ of row i.
  double share(const Rows& r, int64_t i) const {
    const bool usable = r.square[i] < static_cast<double>(std::numeric_limits<T>::max()) / 4;
    return usable ? keep_ * r.square[i] - sigma_ * std::sqrt(r.square[i]) : -std::numeric_limits<double>::infinity();
  }
  T low(const Rows& r, int64_t i) const { return round_down<T>(share(r, i)); }
  // From a query's share and the k-th best score so far.
  T high(double share, double score) const {
    const double worst = metric_ == Metric::cosine ? 2 - 2 * score + score_slack_ : score * (1 + score_slack_);
    const double tiny = 4 * static_cast<double>(dims_) * static_cast<double>(std::numeric_limits<T>::denorm_min());
    return round_down<T>(share - worst - tiny);
  }

  // The exact score of a row of r with a query of norm `norm`.
  double score(const T* query, double norm, const Rows& r, int64_t i) const {
    const T* row = r.data + i * r.stride;
    if (metric_ == Metric::euclidean) return vec_.squared_distance(query, row, dims_);
    return norm == 0 || r.norm[i] == 0 ? 0.0 : vec_.dot(query, row, dims_) / (norm * r.norm[i]);
  }

 private:
  Metric metric_;
  const T* center_;
  int64_t dims_;
  const NearestOps<T>& ops_;
  const VecOps<T>& vec_;
  const PackOps<T, T>& pack_;
  double keep_, sigma_, score_slack_;
};

}  // namespace pal::kernels::cpu
