// nearest_impl: the inner loops of nearest; compiled once per instruction set (PAL_ISA).
#include "kernels/nearest_impl.h"

#include "kernels/base/simd.h"

namespace pal::kernels::PAL_ISA {
namespace {

template <class T>
double center(T* y, const T* x, T scale, const T* center, int64_t n) {
  Vec<T> squares{};
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vec<T> v = scale * load(x + i) - load(center + i);
    store(y + i, v);
    squares += v * v;
  }
  Vec<double> wide[kHalves<T>];
  widen(wide, squares);
  double total = 0;
  for (int h = 0; h < kHalves<T>; ++h) total += sum(wide[h]);
  for (; i < n; ++i) {
    y[i] = scale * x[i] - center[i];
    total += static_cast<double>(y[i]) * static_cast<double>(y[i]);
  }
  return total;
}

// A bit per lane where not a < b: NaN counts.
#if defined(__AVX512F__)
inline uint64_t not_less(Vec<float> a, Vec<float> b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
inline uint64_t not_less(Vec<double> a, Vec<double> b) { return _mm512_cmp_pd_mask(a, b, _CMP_NLT_UQ); }
#elif defined(__AVX2__)
inline uint64_t not_less(Vec<float> a, Vec<float> b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NLT_UQ)); }
inline uint64_t not_less(Vec<double> a, Vec<double> b) { return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_NLT_UQ)); }
#else
inline uint64_t not_less(Vec<float> a, Vec<float> b) { return _mm_movemask_ps(_mm_cmpnlt_ps(a, b)); }
inline uint64_t not_less(Vec<double> a, Vec<double> b) { return _mm_movemask_pd(_mm_cmpnlt_pd(a, b)); }
#endif

template <class T>
int64_t next(uint64_t* lanes, const T* tile, int64_t row, int64_t rows, const T* low, const T* high) {
  for (; row < rows; ++row) {
    uint64_t found = 0;
    for (int64_t lane = 0; lane < kPanelWidth<T>; lane += kLanes<T>) {
      const Vec<T> v = T{2} * load(tile + row * kPanelWidth<T> + lane) - low[row];
      found |= not_less(v, load(high + lane)) << lane;
    }
    if (found == 0) continue;
    *lanes = found;
    return row;
  }
  return rows;
}

}  // namespace

extern const NearestOps<float> nearest_float;
extern const NearestOps<double> nearest_double;
constinit const NearestOps<float> nearest_float = {center<float>, next<float>};
constinit const NearestOps<double> nearest_double = {center<double>, next<double>};

}  // namespace pal::kernels::PAL_ISA
