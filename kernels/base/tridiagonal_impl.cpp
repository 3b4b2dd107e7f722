// tridiagonal_impl: the loops of tridiagonal.h; compiled once per instruction set (PAL_ISA).
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/simd.h"
#include "kernels/base/tridiagonal.h"

namespace pal::kernels::PAL_ISA {
namespace {

using V = Vec<double>;
constexpr int64_t kStep = kLanes<double>;

template <int kRows>
void update_rows(double* p, double* a, int64_t stride, int64_t first, const double* v, const double* w, const double* x,
                 int64_t i) {
  V s[kRows] = {};
  for (int64_t j = first; j < stride; j += kStep) {
    const V vj = load(v + j), wj = load(w + j), xj = load(x + j);
    for (int r = 0; r < kRows; ++r) {
      double* at = a + (i + r) * stride + j;
      const V b = load(at) - v[i + r] * wj - w[i + r] * vj;
      store(at, b);
      s[r] += b * xj;
    }
  }
  for (int r = 0; r < kRows; ++r) p[i + r] = sum(s[r]);
}

void update_and_multiply(double* p, double* a, int64_t stride, int64_t begin, int64_t n, const double* v,
                         const double* w, const double* x) {
  // From the vector that holds column `begin`: what stands before that column is not read again.
  const int64_t first = begin / kStep * kStep;
  int64_t i = begin;
  for (; i + 4 <= n; i += 4) update_rows<4>(p, a, stride, first, v, w, x, i);
  for (; i < n; ++i) update_rows<1>(p, a, stride, first, v, w, x, i);
}

void reflect_rows(double* x, int64_t rows, int64_t stride, const double* v, double tau, int64_t begin) {
  const int64_t first = begin / kStep * kStep;
  for (int64_t r = 0; r < rows; ++r) {
    double* row = x + r * stride;
    V s{};
    for (int64_t j = first; j < stride; j += kStep) s += load(row + j) * load(v + j);
    const double scale = tau * sum(s);
    for (int64_t j = first; j < stride; j += kStep) store(row + j, load(row + j) - scale * load(v + j));
  }
}

void bisect(double* at, const int64_t* wanted, const double* d, const double* e2, int64_t n, double low, double high,
            double norm) {
  constexpr int kVectors = kBisectionLanes / kStep;
  using Mask = decltype(V{} < V{});
  const double least = std::max(std::numeric_limits<double>::min() / std::numeric_limits<double>::epsilon(),
                                norm * norm * std::numeric_limits<double>::min());
  double lo[kBisectionLanes], hi[kBisectionLanes];
  std::fill(lo, lo + kBisectionLanes, low);
  std::fill(hi, hi + kBisectionLanes, high);
  for (int step = 0; step < 120; ++step) {
    // The number of negative pivots of T − mid is the number of eigenvalues below mid.
    V mid[kVectors], q[kVectors];
    Mask below[kVectors] = {};
    for (int u = 0; u < kVectors; ++u) {
      mid[u] = (load(lo + u * kStep) + load(hi + u * kStep)) / 2;
      q[u] = V{} + 1;
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int u = 0; u < kVectors; ++u) {
        const V next = d[i] - mid[u] - (i > 0 ? e2[i - 1] : 0) / q[u];
        q[u] = (next < least && next > -least) ? V{} - least : next;
        below[u] += q[u] < 0;  // −1 where it is
      }
    }
    bool done = true;
    for (int l = 0; l < kBisectionLanes; ++l) {
      const double middle = mid[l / kStep][l % kStep];
      (-below[l / kStep][l % kStep] > wanted[l] ? hi : lo)[l] = middle;
      done &= hi[l] - lo[l] <= 2 * std::numeric_limits<double>::epsilon() * std::max(std::abs(lo[l]), std::abs(hi[l])) +
                                   1e-16 * norm + least;
    }
    if (done) break;
  }
  for (int l = 0; l < kBisectionLanes; ++l) at[l] = (lo[l] + hi[l]) / 2;
}

}  // namespace

extern const TridiagonalOps tridiagonal;
constinit const TridiagonalOps tridiagonal = {update_and_multiply, reflect_rows, bisect};

}  // namespace pal::kernels::PAL_ISA
