// panels_impl: the inner loops of panel products; compiled once per instruction set (PAL_ISA).
#include "kernels/base/panels_impl.h"
#include "kernels/base/simd.h"

namespace pal::kernels::PAL_ISA {
namespace {

constexpr int kWideVectors = 2;                          // a panel is two vectors wide
constexpr int kRows = kRegisters == 32 ? 8 : 4;          // rows of c whose sums stay in registers
template <class C>
constexpr int64_t kWidth = kWideVectors * kLanes<C>;

template <class C>
void tile(C* c, int64_t ldc, const C* a, const C* b, int64_t depth) {
  for (int64_t row = 0; row < kWidth<C>; row += kRows) {
    Vec<C> acc[kRows][kWideVectors] = {};
    for (int64_t k = 0; k < depth; ++k) {
      const C* ak = a + k * kWidth<C> + row;
      const Vec<C> b0 = load(b + k * kWidth<C>), b1 = load(b + k * kWidth<C> + kLanes<C>);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        acc[r][0] += ak[r] * b0;
        acc[r][1] += ak[r] * b1;
      }
    }
    for (int r = 0; r < kRows; ++r) {
      C* to = c + (row + r) * ldc;
      store(to, load(to) + acc[r][0]);
      store(to + kLanes<C>, load(to + kLanes<C>) + acc[r][1]);
    }
  }
}

template <class C, class T>
void pack(C* panel, const T* source, int64_t stride, int64_t depth, int64_t count, const double* mean) {
  for (int64_t k = 0; k < depth; ++k, panel += kWidth<C>, source += stride) {
    if (count == kWidth<C>) {
      if (mean) {
        for (int64_t x = 0; x < kWidth<C>; ++x) panel[x] = static_cast<C>(static_cast<double>(source[x]) - mean[x]);
      } else {
        for (int64_t x = 0; x < kWidth<C>; ++x) panel[x] = static_cast<C>(source[x]);
      }
    } else {
      for (int64_t x = 0; x < kWidth<C>; ++x) {
        panel[x] = x < count ? static_cast<C>(static_cast<double>(source[x]) - (mean ? mean[x] : 0.0)) : C{0};
      }
    }
  }
}

template <class C, class T>
void turn(C* panel, const T* source, int64_t stride, int64_t depth, int64_t count, const double* mean) {
  // In short stretches of k, so that the lines being written stay in the first cache.
  constexpr int64_t kStretch = 16;
  for (int64_t k0 = 0; k0 < depth; k0 += kStretch) {
    const int64_t k1 = k0 + kStretch < depth ? k0 + kStretch : depth;
    for (int64_t x = 0; x < kWidth<C>; ++x) {
      for (int64_t k = k0; k < k1; ++k) {
        panel[k * kWidth<C> + x] =
            x < count ? static_cast<C>(static_cast<double>(source[x * stride + k]) - (mean ? mean[k] : 0.0)) : C{0};
      }
    }
  }
}

template <class C>
constexpr PanelOps<C> table() {
  static_assert(kWidth<C> <= kMaxPanelWidth && kMaxPanelWidth % kWidth<C> == 0 && kWidth<C> % kRows == 0);
  return {kWidth<C>, tile<C>, pack<C, float>, pack<C, double>, turn<C, float>, turn<C, double>};
}

}  // namespace

extern const PanelOps<float> panel_float;
extern const PanelOps<double> panel_double;
constinit const PanelOps<float> panel_float = table<float>();
constinit const PanelOps<double> panel_double = table<double>();

}  // namespace pal::kernels::PAL_ISA
