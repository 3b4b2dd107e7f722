#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/theory/matrix.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "kernels/base/tridiagonal.h"

namespace pal::theory {
namespace {

// LU of the tridiagonal T − shift with pivoting, for inverse iteration; pivots below `tiny` become `tiny`.
class TridiagonalFactors {
 public:
  void factorize(const double* d, const double* e, int64_t n, double shift, double tiny);
  void solve(double* x) const;  // in place, scaled against overflow

 private:
  std::vector<double> diagonal_, upper_, upper2_, lower_;
  std::vector<char> swapped_;
};

void TridiagonalFactors::factorize(const double* d, const double* e, int64_t n, double shift, double tiny) {
  const auto size = static_cast<size_t>(n);
  diagonal_.resize(size);
  upper_.assign(size, 0);
  upper2_.assign(size, 0);
  lower_.assign(size, 0);
  swapped_.assign(size, 0);
  double pivot = d[0] - shift, right = n > 1 ? e[0] : 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    const double below = e[i], next = d[i + 1] - shift, next_right = i + 2 < n ? e[i + 1] : 0;
    if (std::abs(pivot) >= std::abs(below)) {
      if (std::abs(pivot) < tiny) pivot = pivot < 0 ? -tiny : tiny;
      const double m = below / pivot;
      diagonal_[i] = pivot;
      upper_[i] = right;
      lower_[i] = m;
      pivot = next - m * right;
      right = next_right;
    } else {  // swap the rows
      const double m = pivot / below;
      swapped_[i] = 1;
      diagonal_[i] = below;
      upper_[i] = next;
      upper2_[i] = next_right;
      lower_[i] = m;
      pivot = right - m * next;
      right = -m * next_right;
    }
  }
  diagonal_[size - 1] = std::abs(pivot) < tiny ? (pivot < 0 ? -tiny : tiny) : pivot;
}

void TridiagonalFactors::solve(double* x) const {
  const auto n = static_cast<int64_t>(diagonal_.size());
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (swapped_[i]) std::swap(x[i], x[i + 1]);
    x[i + 1] -= lower_[i] * x[i];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    double value = x[i];
    if (i + 1 < n) value -= upper_[i] * x[i + 1];
    if (i + 2 < n) value -= upper2_[i] * x[i + 2];
    x[i] = value / diagonal_[i];
  }
}

}  // namespace

TopEigen::TopEigen(int64_t n, int64_t k) : n_(n), k_(k), stride_((n + 7) / 8 * 8) {
  PAL_CHECK(k >= 1 && k <= n, "eigenvectors asked for", k,
            "ask for at least 1 and at most the matrix's size, " + std::to_string(n));
  const auto whole = static_cast<size_t>(n * stride_), line = static_cast<size_t>(stride_);
  a_.assign(whole, 0);
  reflectors_.assign(whole, 0);
  tau_.assign(static_cast<size_t>(n), 0);
  d_.assign(static_cast<size_t>(n), 0);
  e_.assign(static_cast<size_t>(n), 0);
  v_.assign(line, 0);
  w_.assign(line, 0);
  p_.assign(line, 0);
  values_.assign(static_cast<size_t>(k), 0);
  tridiagonal_vectors_ = Matrix(k, stride_);
  vectors_ = Matrix(k, n);
}

void TopEigen::solve(const Matrix& a) {
  PAL_ASSERT(a.rows == n_ && a.cols == n_, "the matrix has the size that was announced");
  tridiagonalize(a);
  bisect();
  inverse_iterate();
  reflect_back();
}

// Column j: A ← H A H with H = I − τ v vᵀ, so that A −= v wᵀ + w vᵀ with w = p − (τ/2)(pᵀv) v, p = τ A v. The update of
// column j − 1 is still pending when column j begins: it is applied in the same pass that computes p.
void TopEigen::tridiagonalize(const Matrix& a) {
  const kernels::TridiagonalOps& ops = kernels::tridiagonal_ops(kernels::best_isa());
  for (int64_t i = 0; i < n_; ++i) std::copy(a.row(i), a.row(i) + n_, a_.data() + i * stride_);
  std::fill(v_.begin(), v_.end(), 0);
  std::fill(w_.begin(), w_.end(), 0);
  for (int64_t j = 0; j < n_; ++j) {
    double* column = a_.data() + j * stride_;  // row j, which is column j
    for (int64_t i = j; i < n_; ++i) column[i] -= v_[j] * w_[i] + w_[j] * v_[i];
    d_[j] = column[j];
    if (j + 1 == n_) break;
    double* v = reflectors_.data() + j * stride_;
    double tail = 0;
    for (int64_t i = j + 2; i < n_; ++i) tail += column[i] * column[i];
    const double head = column[j + 1];
    const double norm = std::sqrt(head * head + tail);
    std::fill(v, v + j + 1, 0.0);
    if (tail == 0) {  // nothing to annihilate: H = I
      e_[j] = head;
      tau_[j] = 0;
      std::fill(v + j + 1, v + n_, 0.0);
    } else {
      const double alpha = head > 0 ? -norm : norm;
      e_[j] = alpha;
      tau_[j] = (alpha - head) / alpha;
      v[j + 1] = 1;
      for (int64_t i = j + 2; i < n_; ++i) v[i] = column[i] / (head - alpha);
    }
    ops.update_and_multiply(p_.data(), a_.data(), stride_, j + 1, n_, v_.data(), w_.data(), v);
    double dot = 0;
    for (int64_t i = j + 1; i < n_; ++i) dot += p_[i] * v[i];
    const double tau = tau_[j], half = tau * tau * dot / 2;
    std::copy(v, v + stride_, v_.data());
    std::fill(w_.begin(), w_.begin() + j + 1, 0.0);
    for (int64_t i = j + 1; i < n_; ++i) w_[i] = tau * p_[i] - half * v[i];
  }
}

void TopEigen::bisect() {
  double low = d_[0], high = d_[0];
  norm_ = 1e-100;  // large enough that a division by its rounding error cannot overflow
  bool finite = true;
  for (int64_t i = 0; i < n_; ++i) {  // Gershgorin
    const double radius = (i > 0 ? std::abs(e_[i - 1]) : 0) + (i + 1 < n_ ? std::abs(e_[i]) : 0);
    low = std::min(low, d_[i] - radius);
    high = std::max(high, d_[i] + radius);
    norm_ = std::max(norm_, std::abs(d_[i]) + radius);
    finite = finite && std::isfinite(std::abs(d_[i]) + radius);
  }
  PAL_CHECK_CODE(Exit::numerics, finite, "a matrix to decompose is not finite; its size", n_,
                 "look for infinite or huge entries");
  std::vector<double> squares(e_);
  for (double& s : squares) s *= s;
  const double slack = 1e-14 * norm_;
  for (int64_t first = 0; first < k_; first += kernels::kBisectionLanes) {
    double at[kernels::kBisectionLanes];
    int64_t wanted[kernels::kBisectionLanes];  // number of eigenvalues below
    for (int l = 0; l < kernels::kBisectionLanes; ++l) wanted[l] = n_ - 1 - std::min(first + l, k_ - 1);
    kernels::tridiagonal_ops(kernels::best_isa())
        .bisect(at, wanted, d_.data(), squares.data(), n_, low - slack, high + slack, norm_);
    for (int64_t l = 0; l < kernels::kBisectionLanes && first + l < k_; ++l) values_[first + l] = at[l];
  }
}

// Each vector is orthogonalized against those before it: inverse iteration alone does not separate close eigenvalues.
void TopEigen::inverse_iterate() {
  const double eps = std::numeric_limits<double>::epsilon(), tiny = eps * norm_;
  TridiagonalFactors factors;
  double shift = 0;
  for (int64_t t = 0; t < k_; ++t) {
    // Equal eigenvalues get different shifts, so that they give different vectors.
    shift = t > 0 && values_[t] > shift - 10 * tiny ? shift - 10 * tiny : values_[t];
    factors.factorize(d_.data(), e_.data(), n_, shift, tiny);
    double* x = tridiagonal_vectors_.row(t);
    Random random(1, Purpose::theory, static_cast<uint64_t>(t));
    for (int64_t i = 0; i < n_; ++i) x[i] = random.next_double() - 0.5;
    for (int iteration = 0; iteration < 4; ++iteration) {
      factors.solve(x);
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t s = 0; s < t; ++s) {
          const double* y = tridiagonal_vectors_.row(s);
          if (values_[s] - values_[t] > 1e-3 * norm_) continue;
          double dot = 0;
          for (int64_t i = 0; i < n_; ++i) dot += x[i] * y[i];
          for (int64_t i = 0; i < n_; ++i) x[i] -= dot * y[i];
        }
      }
      double square = 0;
      for (int64_t i = 0; i < n_; ++i) square += x[i] * x[i];
      const double scale = 1 / std::sqrt(square);
      for (int64_t i = 0; i < n_; ++i) x[i] *= scale;
    }
  }
}

void TopEigen::reflect_back() {
  const kernels::TridiagonalOps& ops = kernels::tridiagonal_ops(kernels::best_isa());
  for (int64_t j = n_ - 2; j >= 0; --j) {
    if (tau_[j] != 0)
      ops.reflect_rows(tridiagonal_vectors_.data.data(), k_, stride_, reflectors_.data() + j * stride_, tau_[j], j + 1);
  }
  for (int64_t t = 0; t < k_; ++t) {
    const double* x = tridiagonal_vectors_.row(t);
    std::copy(x, x + n_, vectors_.row(t));
  }
}

}  // namespace pal::theory
