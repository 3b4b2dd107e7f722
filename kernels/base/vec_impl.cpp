// vec_impl: the vector loops; compiled once per instruction set (PAL_ISA).
#include "kernels/base/simd.h"
#include "kernels/base/vec.h"

namespace pal::kernels::PAL_ISA {
namespace {

// Sums keep two vectors of doubles in flight and add the lanes in order at the end; the tail follows one by one.
template <class T, class Term, class TailTerm>
double reduce(int64_t n, Term term, TailTerm tail_term) {
  constexpr int kStep = kLanes<double>;
  Vec<double> s0{}, s1{};
  int64_t i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    s0 += term(i);
    s1 += term(i + kStep);
  }
  for (; i + kStep <= n; i += kStep) s0 += term(i);
  double s = sum(s0 + s1);
  for (; i < n; ++i) s += tail_term(i);
  return s;
}

template <class T>
double dot(const T* a, const T* b, int64_t n) {
  return reduce<T>(
      n, [=](int64_t i) { return load_wide(a + i) * load_wide(b + i); },
      [=](int64_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

template <class T>
double squared_distance(const T* a, const T* b, int64_t n) {
  return reduce<T>(
      n,
      [=](int64_t i) {
        const Vec<double> d = load_wide(a + i) - load_wide(b + i);
        return d * d;
      },
      [=](int64_t i) {
        const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        return d * d;
      });
}

template <class T>
void axpy(T* y, double s, const T* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<double> <= n; i += kLanes<double>) store_narrow(y + i, load_wide(y + i) + s * load_wide(x + i));
  for (; i < n; ++i) y[i] = static_cast<T>(static_cast<double>(y[i]) + s * static_cast<double>(x[i]));
}

template <class T>
void add_wide(double* y, const T* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<double> <= n; i += kLanes<double>) store(y + i, load(y + i) + load_wide(x + i));
  for (; i < n; ++i) y[i] += static_cast<double>(x[i]);
}

template <class T>
void add_squares(double* y, const T* x, const double* m, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<double> <= n; i += kLanes<double>) {
    const Vec<double> d = load_wide(x + i) - load(m + i);
    store(y + i, load(y + i) + d * d);
  }
  for (; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - m[i];
    y[i] += d * d;
  }
}

template <class T>
void dot_and_square(double* dot, double* square, const T* a, const T* b, int64_t n) {
  constexpr int kStep = kLanes<double>;
  Vec<double> d[2] = {}, s[2] = {};
  int64_t i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    for (int u = 0; u < 2; ++u) {
      const Vec<double> y = load_wide(b + i + u * kStep);
      d[u] += load_wide(a + i + u * kStep) * y;
      s[u] += y * y;
    }
  }
  *dot = sum(d[0] + d[1]);
  *square = sum(s[0] + s[1]);
  for (; i < n; ++i) {
    *dot += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    *square += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
}

enum class Write { overwrite, add };

template <Write kWrite, class T>
void scale_narrow(T* y, double s, const double* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<double> <= n; i += kLanes<double>) {
    Vec<double> v = s * load(x + i);
    if (kWrite == Write::add) v += load_wide(y + i);
    store_narrow(y + i, v);
  }
  for (; i < n; ++i) {
    const double v = s * x[i];
    y[i] = static_cast<T>(kWrite == Write::add ? static_cast<double>(y[i]) + v : v);
  }
}

template <Write kWrite, class T>
double difference(T* y, double s, const T* x, const double* m, int64_t n) {
  return reduce<T>(
      n,
      [=](int64_t i) {
        const Vec<double> d = load_wide(x + i) - load(m + i);
        if (y) store_narrow(y + i, kWrite == Write::add ? load_wide(y + i) + s * d : s * d);
        return d * d;
      },
      [=](int64_t i) {
        const double d = static_cast<double>(x[i]) - m[i];
        if (y) y[i] = static_cast<T>(kWrite == Write::add ? static_cast<double>(y[i]) + s * d : s * d);
        return d * d;
      });
}

// Checks run over pieces without a branch inside, then search the piece that has a bad element.
constexpr int64_t kPiece = 4096;

template <class T>
int64_t first_not_finite(const T* x, int64_t n) {
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    int bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= !(x[i] - x[i] == T{0});
    if (!bad) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (!(x[i] - x[i] == T{0})) return i;
    }
  }
  return -1;
}

int64_t first_outside(const int32_t* x, int64_t n, int64_t low, int64_t high) {
  const uint32_t base = static_cast<uint32_t>(low), width = static_cast<uint32_t>(high - low);
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    int bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= static_cast<uint32_t>(x[i]) - base >= width;
    if (!bad) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (static_cast<uint32_t>(x[i]) - base >= width) return i;
    }
  }
  return -1;
}

template <class T>
constexpr VecOps<T> table() {
  return {dot<T>,
          squared_distance<T>,
          axpy<T>,
          add_wide<T>,
          add_squares<T>,
          dot_and_square<T>,
          scale_narrow<Write::overwrite, T>,
          scale_narrow<Write::add, T>,
          difference<Write::overwrite, T>,
          difference<Write::add, T>,
          first_not_finite<T>};
}

}  // namespace

extern const VecOps<float> vec_float;
extern const VecOps<double> vec_double;
extern const IndexOps vec_index;
constinit const VecOps<float> vec_float = table<float>();
constinit const VecOps<double> vec_double = table<double>();
constinit const IndexOps vec_index = {first_outside};

}  // namespace pal::kernels::PAL_ISA
