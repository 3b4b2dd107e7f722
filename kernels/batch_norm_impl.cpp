// batch_norm_impl: the loops of batch_norm over one tile; compiled once per instruction set (PAL_ISA).
//
// Sums go by eight doubles at a time, kBlocks independent ones to cover the latency of the additions. The maps are left
// to the compiler's own vectorizer: one pass over memory, nothing to gain by hand.
#include "kernels/batch_norm_impl.h"

#include <cstring>

// Vectors wider than a baseline register pass between file-private, inlined functions only: no ABI to keep.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace pal::kernels::PAL_ISA {
namespace {

constexpr int kLanes = 8;
constexpr int kBlocks = 4;
typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float type __attribute__((vector_size(kLanes * sizeof(float))));
};
template <>
struct Lanes<double> {
  typedef Doubles type;
};

template <class V, class T>
inline V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
inline Doubles widen(Lanes<float>::type v) { return __builtin_convertvector(v, Doubles); }
inline Doubles widen(Doubles v) { return v; }
inline double total(Doubles v) { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }

// What is summed: for each element a pair (first, second). Terms are made of vectors or of single numbers alike.
template <class T>
struct ValueTerms {  // x − shift and its square
  using V = typename Lanes<T>::type;
  const T* x;
  const double* shift;

  template <class D>
  void vector(int64_t at, const D& shift_c, Doubles& first, Doubles& second) const {
    const Doubles v = widen(load<V>(x + at)) - shift_c;
    first += v;
    second += v * v;
  }
  void single(int64_t at, double shift_c, double& first, double& second) const {
    const double v = static_cast<double>(x[at]) - shift_c;
    first += v;
    second += v * v;
  }
};

enum class Mask { none, positive };
enum class Keep { no, yes };

template <class T, Mask kMask, Keep kKeep>
struct GradTerms {  // g and g (x − mean); keeps g when asked
  using V = typename Lanes<T>::type;
  T* g;
  const T* dy;
  const T* y;
  const T* x;
  const double* shift;

  template <class D>
  void vector(int64_t at, const D& mean_c, Doubles& first, Doubles& second) const {
    V v = load<V>(dy + at);
    if constexpr (kMask == Mask::positive) v = load<V>(y + at) <= 0 ? V{} : v;
    if constexpr (kKeep == Keep::yes) std::memcpy(g + at, &v, sizeof(V));
    const Doubles wide = widen(v);
    first += wide;
    second += wide * (widen(load<V>(x + at)) - mean_c);
  }
  void single(int64_t at, double mean_c, double& first, double& second) const {
    T v = dy[at];
    if constexpr (kMask == Mask::positive) v = y[at] <= 0 ? T{0} : v;
    if constexpr (kKeep == Keep::yes) g[at] = v;
    first += static_cast<double>(v);
    second += static_cast<double>(v) * (static_cast<double>(x[at]) - mean_c);
  }
};

// Planes: a channel at a time, all its planes of the tile.
template <class Terms>
void sum_planes(double* firsts, double* seconds, const Terms& terms, const ChannelTile& tile) {
  const int64_t inner = tile.grid.inner, stride = tile.grid.channels * inner;
  for (int64_t c = tile.first; c < tile.last; ++c) {
    Doubles first[kBlocks] = {}, second[kBlocks] = {};
    double first_rest = 0, second_rest = 0;
    const double shift = terms.shift[c];
    for (int64_t o = tile.begin; o < tile.end; ++o) {
      const int64_t base = o * stride + c * inner;
      int64_t i = 0;
      for (; i + kBlocks * kLanes <= inner; i += kBlocks * kLanes)
        for (int b = 0; b < kBlocks; ++b) terms.vector(base + i + b * kLanes, shift, first[b], second[b]);
      for (; i + kLanes <= inner; i += kLanes) terms.vector(base + i, shift, first[0], second[0]);
      for (; i < inner; ++i) terms.single(base + i, shift, first_rest, second_rest);
    }
    firsts[c] = total((first[0] + first[1]) + (first[2] + first[3])) + first_rest;
    seconds[c] = total((second[0] + second[1]) + (second[2] + second[3])) + second_rest;
  }
}

// Rows: kBlocks·kLanes channels at a time down the rows of the tile, sums in registers.
template <int kCount, class Terms>
inline void sum_columns(double* firsts, double* seconds, const Terms& terms, int64_t c, const ChannelTile& tile) {
  Doubles first[kCount] = {}, second[kCount] = {}, shift[kCount];
  for (int b = 0; b < kCount; ++b) shift[b] = load<Doubles>(terms.shift + c + b * kLanes);
  for (int64_t o = tile.begin; o < tile.end; ++o)
    for (int b = 0; b < kCount; ++b)
      terms.vector(o * tile.grid.channels + c + b * kLanes, shift[b], first[b], second[b]);
  std::memcpy(firsts + c, first, sizeof(first));
  std::memcpy(seconds + c, second, sizeof(second));
}

template <class Terms>
void sum_rows(double* firsts, double* seconds, const Terms& terms, const ChannelTile& tile) {
  int64_t c = tile.first;
  for (; c + kBlocks * kLanes <= tile.last; c += kBlocks * kLanes)
    sum_columns<kBlocks>(firsts, seconds, terms, c, tile);
  for (; c + kLanes <= tile.last; c += kLanes) sum_columns<1>(firsts, seconds, terms, c, tile);
  for (; c < tile.last; ++c) {
    firsts[c] = seconds[c] = 0;
    for (int64_t o = tile.begin; o < tile.end; ++o)
      terms.single(o * tile.grid.channels + c, terms.shift[c], firsts[c], seconds[c]);
  }
}

template <class Terms>
void sum_terms(double* firsts, double* seconds, const Terms& terms, const ChannelTile& tile) {
  if (tile.grid.inner == 1) return sum_rows(firsts, seconds, terms, tile);
  sum_planes(firsts, seconds, terms, tile);
}

// Calls f(element, channel) over the tile; in a plane the channel is constant, which the compiler sees.
template <class F>
inline void for_elements(const ChannelTile& tile, const F& f) {
  const int64_t inner = tile.grid.inner, channels = tile.grid.channels;
  for (int64_t o = tile.begin; o < tile.end; ++o) {
    if (inner == 1) {
      const int64_t base = o * channels;
#pragma GCC ivdep
      for (int64_t c = tile.first; c < tile.last; ++c) f(base + c, c);
    } else {
      for (int64_t c = tile.first; c < tile.last; ++c) {
        const int64_t base = (o * channels + c) * inner;
#pragma GCC ivdep
        for (int64_t i = 0; i < inner; ++i) f(base + i, c);
      }
    }
  }
}

template <class T>
void sums(double* firsts, double* seconds, const T* x, const double* shift, const ChannelTile& tile) {
  sum_terms(firsts, seconds, ValueTerms<T>{x, shift}, tile);
}

template <class T>
void grad_sums(double* firsts, double* seconds, T* g, const T* dy, const T* y, const T* x, const double* mean,
               const ChannelTile& tile) {
  if (y && g) return sum_terms(firsts, seconds, GradTerms<T, Mask::positive, Keep::yes>{g, dy, y, x, mean}, tile);
  if (y) return sum_terms(firsts, seconds, GradTerms<T, Mask::positive, Keep::no>{g, dy, y, x, mean}, tile);
  if (g) return sum_terms(firsts, seconds, GradTerms<T, Mask::none, Keep::yes>{g, dy, y, x, mean}, tile);
  sum_terms(firsts, seconds, GradTerms<T, Mask::none, Keep::no>{g, dy, y, x, mean}, tile);
}

template <class T>
void affine(T* y, const T* x, const T* residual, const T* shift, const T* scale, const T* offset, Activation act,
            const ChannelTile& tile) {
  const auto line = [=](int64_t e, int64_t c) { return (x[e] - shift[c]) * scale[c] + offset[c]; };
  const auto relu = [](T v) { return v < 0 ? T{0} : v; };  // NaN stays NaN
  if (act == Activation::relu && residual)
    return for_elements(tile, [=](int64_t e, int64_t c) { y[e] = relu(line(e, c) + residual[e]); });
  if (act == Activation::relu) return for_elements(tile, [=](int64_t e, int64_t c) { y[e] = relu(line(e, c)); });
  if (residual) return for_elements(tile, [=](int64_t e, int64_t c) { y[e] = line(e, c) + residual[e]; });
  for_elements(tile, [=](int64_t e, int64_t c) { y[e] = line(e, c); });
}

template <class T>
void grad(T* dx, const T* dy, const T* y, const T* x, const T* shift, const T* a, const T* p, const T* q,
          const ChannelTile& tile) {
  const auto line = [=](T g, int64_t e, int64_t c) { return a[c] * g + (p[c] * (x[e] - shift[c]) + q[c]); };
  if (y) return for_elements(tile, [=](int64_t e, int64_t c) { dx[e] = line(y[e] <= 0 ? T{0} : dy[e], e, c); });
  for_elements(tile, [=](int64_t e, int64_t c) { dx[e] = line(dy[e], e, c); });
}

}  // namespace

extern const BatchNormLoops<float> batch_norm_float;
extern const BatchNormLoops<double> batch_norm_double;
const BatchNormLoops<float> batch_norm_float = {sums<float>, affine<float>, grad_sums<float>, grad<float>};
const BatchNormLoops<double> batch_norm_double = {sums<double>, affine<double>, grad_sums<double>, grad<double>};

}  // namespace pal::kernels::PAL_ISA
