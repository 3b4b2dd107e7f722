// panels_impl: the inner loops of panel products; compiled once per instruction set (PAL_ISA).
#include "kernels/base/panels_impl.h"

#include <type_traits>

#include "kernels/base/simd.h"

namespace pal::kernels::PAL_ISA {
namespace {

// Rows of c whose sums stay in registers; the rest of the registers hold what is loaded.
constexpr int kRows = kRegisters == 32 ? 8 : 4;
constexpr int64_t kAhead = 16;  // steps of a that are prefetched into the L1 cache; b is there already
template <class C>
constexpr int64_t kWidth = kPanelWidth<C>;
template <class C>
constexpr int kVectors = kPanelWidth<C> / kLanes<C>;

enum class Write { overwrite, add };

template <Write kWrite, class C>
void tile(C* c, int64_t ldc, const C* a, const C* b, int64_t depth) {
  for (int64_t row = 0; row < kWidth<C>; row += kRows) {
    Vec<C> acc[kRows][kVectors<C>] = {};
    for (int64_t k = 0; k < depth; ++k) {
      const C* ak = a + k * kWidth<C> + row;
      __builtin_prefetch(ak + kAhead * kWidth<C>);
      Vec<C> bk[kVectors<C>];
      for (int v = 0; v < kVectors<C>; ++v) bk[v] = load(b + k * kWidth<C> + v * kLanes<C>);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors<C>; ++v) acc[r][v] += ak[r] * bk[v];
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors<C>; ++v) {
        C* to = c + (row + r) * ldc + v * kLanes<C>;
        store(to, kWrite == Write::add ? load(to) + acc[r][v] : acc[r][v]);
      }
    }
  }
}

template <class C, class T>
C centered(T x, double mean) {
  return static_cast<C>(static_cast<double>(x) - mean);
}

// kLanes<C> elements of the source as C, less the mean; the difference is taken in fp64.
template <class C, class T>
Vec<C> load_centered(const T* p, const double* mean) {
  if constexpr (std::is_same_v<T, C>) {
    if (!mean) return load(p);
  }
  C lanes[kLanes<C>];
  for (int h = 0; h < kHalves<C>; ++h) {
    const int64_t at = h * kLanes<double>;
    store_narrow(lanes + at, mean ? load_wide(p + at) - load(mean + at) : load_wide(p + at));
  }
  return load(lanes);
}

template <class T, class C>
void pack(C* panel, const T* source, int64_t stride, int64_t depth, int64_t count, const double* mean) {
  for (int64_t k = 0; k < depth; ++k, panel += kWidth<C>, source += stride) {
    int64_t x = 0;
    for (; x + kLanes<C> <= count; x += kLanes<C>)
      store(panel + x, load_centered<C>(source + x, mean ? mean + x : nullptr));
    for (; x < count; ++x) panel[x] = centered<C>(source[x], mean ? mean[x] : 0.0);
    for (; x < kWidth<C>; ++x) panel[x] = C{0};
  }
}

// Transposes a square of vectors: in each round, vector i is interleaved with vector i + half.
template <class C>
void transpose(Vec<C> (&v)[kLanes<C>]) {
  constexpr int kN = kLanes<C>;
  for (int round = 1; round < kN; round *= 2) {
    Vec<C> t[kN];
    for (int i = 0; i < kN / 2; ++i) {
      const Vec<C> a = v[i], b = v[i + kN / 2];
      if constexpr (kN == 2) {
        t[2 * i] = __builtin_shufflevector(a, b, 0, 2);
        t[2 * i + 1] = __builtin_shufflevector(a, b, 1, 3);
      } else if constexpr (kN == 4) {
        t[2 * i] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        t[2 * i + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      } else if constexpr (kN == 8) {
        t[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        t[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      } else {
        t[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        t[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      }
    }
    for (int i = 0; i < kN; ++i) v[i] = t[i];
  }
}

template <class T, class C>
void turn(C* panel, const T* source, int64_t stride, int64_t depth, int64_t count, const double* mean) {
  constexpr int64_t kN = kLanes<C>;
  for (int64_t x0 = 0; x0 < kWidth<C>; x0 += kN) {
    int64_t k = 0;
    for (; x0 + kN <= count && k + kN <= depth; k += kN) {
      Vec<C> square[kN];
      for (int64_t x = 0; x < kN; ++x)
        square[x] = load_centered<C>(source + (x0 + x) * stride + k, mean ? mean + k : nullptr);
      transpose<C>(square);
      for (int64_t r = 0; r < kN; ++r) store(panel + (k + r) * kWidth<C> + x0, square[r]);
    }
    for (; k < depth; ++k) {
      for (int64_t x = x0; x < x0 + kN; ++x) {
        panel[k * kWidth<C> + x] = x < count ? centered<C>(source[x * stride + k], mean ? mean[k] : 0.0) : C{0};
      }
    }
  }
}

template <class C>
constexpr PanelOps<C> products() {
  static_assert(kMaxPanelWidth<C> % kWidth<C> == 0 && kWidth<C> % kRows == 0);
  return {kWidth<C>, tile<Write::overwrite, C>, tile<Write::add, C>};
}

}  // namespace

extern const PanelOps<float> panel_float;
extern const PanelOps<double> panel_double;
extern const PackOps<float, float> pack_float_float;
extern const PackOps<float, double> pack_float_double;
extern const PackOps<double, double> pack_double_double;
constinit const PanelOps<float> panel_float = products<float>();
constinit const PanelOps<double> panel_double = products<double>();
constinit const PackOps<float, float> pack_float_float = {pack<float, float>, turn<float, float>};
constinit const PackOps<float, double> pack_float_double = {pack<float, double>, turn<float, double>};
constinit const PackOps<double, double> pack_double_double = {pack<double, double>, turn<double, double>};

}  // namespace pal::kernels::PAL_ISA
