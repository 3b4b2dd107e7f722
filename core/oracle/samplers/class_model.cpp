#include "core/oracle/samplers/class_model.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/oracle/samplers/exact_sums.h"
#include "core/oracle/samplers/products.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr int64_t kPiece = 1024;         // points scored at a time: their scores stay in the caches
constexpr int64_t kScatterRows = 16384;  // members that the scatter is taken from, at most: the first by sample

// L of the lower triangle of a (n, n), in place; a is positive definite by its ridge.
void cholesky(std::vector<double>& a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      double sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
}

// L Lᵀ X = B in place; b (n, m) row by row.
void solve_factored(const std::vector<double>& l, int64_t n, std::vector<double>& b, int64_t m) {
  const auto subtract = [&](int64_t to, double factor, int64_t from) {
    for (int64_t c = 0; c < m; ++c) b[to * m + c] -= factor * b[from * m + c];
  };
  const auto divide = [&](int64_t row, double by) {
    for (int64_t c = 0; c < m; ++c) b[row * m + c] /= by;
  };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) subtract(i, l[i * n + k], k);
    divide(i, l[i * n + i]);
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t k = i + 1; k < n; ++k) subtract(i, l[k * n + i], k);
    divide(i, l[i * n + i]);
  }
}

// Mean variance of a column; rows have length 1.
double mean_variance(const ExactSums& sums, int64_t groups, int64_t dims) {
  double n = 0, square = 0;
  for (int64_t g = 0; g < groups; ++g) n += static_cast<double>(sums.rows(g));
  for (int64_t k = 0; k < dims; ++k) {
    double sum = 0;
    for (int64_t g = 0; g < groups; ++g) sum += sums.sum(g, k);
    square += sum * sum;
  }
  return n == 0 ? 1 : std::max((n - square / n) / (n * static_cast<double>(dims)), 1e-12);
}

}  // namespace

ClassModel::ClassModel(const PoolRows& pool, const std::vector<int64_t>& row_class, int64_t classes, ModelKind kind,
                       const std::vector<int32_t>& weights)
    : count_(classes, 0), bias_(classes, kNever) {
  const int64_t dims = pool.dims();
  std::vector<int64_t> group_here, members;  // of all ranks: rows of the pool
  std::vector<int32_t> times_here;
  for (int64_t row : pool.rows_here()) {
    group_here.push_back(row_class[row] < 0 ? classes : row_class[row]);  // the last group: all others
    if (!weights.empty()) times_here.push_back(row_class[row] < 0 ? 1 : weights[row]);
  }
  const ExactSums sums(pool.here(), group_here, classes + 1, pool.comm(), times_here);
  for (size_t row = 0; row < row_class.size(); ++row) {
    const int64_t often = row_class[row] < 0 ? 0 : weights.empty() ? 1 : weights[row];
    for (int64_t t = 0; t < often && static_cast<int64_t>(members.size()) < kScatterRows; ++t)
      members.push_back(static_cast<int64_t>(row));
  }
  std::vector<double> mean(dims * classes, 0);  // (D, classes)
  for (int64_t c = 0; c < classes; ++c) {
    count_[c] = sums.rows(c);
    for (int64_t k = 0; k < dims; ++k)
      mean[k * classes + c] = sums.sum(c, k) / static_cast<double>(std::max<int64_t>(count_[c], 1));
  }

  const double variance = mean_variance(sums, classes + 1, dims);
  std::vector<double> w = mean;
  const auto n = static_cast<int64_t>(members.size());
  if (kind == ModelKind::centers || n == 0) {
    for (double& v : w) v /= variance;
  } else {
    // Around the means: the members less their class's mean, so that nothing cancels.
    at::Tensor around = pool.gather(members);
    float* a = around.data_ptr<float>();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t c = row_class[members[i]];
      for (int64_t k = 0; k < dims; ++k) a[i * dims + k] = static_cast<float>(a[i * dims + k] - mean[k * classes + c]);
    }
    std::vector<double> sigma = scatter(around);
    const auto filled = std::count_if(count_.begin(), count_.end(), [](int64_t m) { return m > 0; });
    const auto kappa = static_cast<double>(dims), total = static_cast<double>(std::max<int64_t>(n - filled, 0)) + kappa;
    for (double& v : sigma) v /= total;
    for (int64_t k = 0; k < dims; ++k) sigma[k * dims + k] += kappa * variance / total;
    cholesky(sigma, dims);
    solve_factored(sigma, dims, w, classes);
  }

  weight_ = at::empty({dims, classes}, at::kFloat);
  for (int64_t k = 0; k < dims * classes; ++k) weight_.data_ptr<float>()[k] = static_cast<float>(w[k]);
  for (int64_t c = 0; c < classes; ++c) {
    double half = 0;
    for (int64_t k = 0; k < dims; ++k) half += 0.5 * w[k * classes + c] * mean[k * classes + c];
    if (count_[c] > 0) bias_[c] = static_cast<float>(-half);
  }
}

at::Tensor ClassModel::scores(const at::Tensor& rows) const {
  at::Tensor out = times(rows, weight_);
  float* s = out.data_ptr<float>();
  const int64_t n = out.size(0), classes = out.size(1);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < classes; ++c) s[i * classes + c] += bias_[c];
  }
  return out;
}

std::vector<float> ClassModel::scores_of(const at::Tensor& rows, int64_t c) const {
  const at::Tensor s = times(rows, weight_.narrow(1, c, 1).contiguous());
  std::vector<float> out(s.const_data_ptr<float>(), s.const_data_ptr<float>() + s.numel());
  for (float& v : out) v += bias_[c];
  return out;
}

double ClassModel::slope(int64_t a, int64_t b) const {
  double square = 0;
  const float* w = weight_.const_data_ptr<float>();
  for (int64_t k = 0; k < weight_.size(0); ++k) {
    const double d = static_cast<double>(w[k * classes() + a]) - w[k * classes() + b];
    square += d * d;
  }
  return std::sqrt(square);
}

namespace {

// f(indices of `points`, scores (n, classes) with excluded classes at −∞) for pieces of the points whose rows lie here.
template <class F>
void for_each_piece(const Candidates& board, const ClassModel& model, const std::vector<int64_t>& points, const F& f) {
  const std::vector<int64_t> here = board.points_here(points);
  for (size_t begin = 0; begin < here.size(); begin += kPiece) {
    const std::vector<int64_t> piece(here.begin() + static_cast<int64_t>(begin),
                                     here.begin() + static_cast<int64_t>(std::min(here.size(), begin + kPiece)));
    at::Tensor scores = model.scores(board.rows_here(points, piece));
    float* s = scores.data_ptr<float>();
    for (size_t i = 0; i < piece.size(); ++i) {
      for (int64_t c : board.excluded(points[piece[i]])) s[static_cast<int64_t>(i) * model.classes() + c] = kNever;
    }
    f(piece, s);
  }
}

Belief belief_of(const float* s, int64_t classes) {
  Belief b;
  for (int64_t c = 0; c < classes; ++c) {
    if (s[c] == kNever) continue;
    if (b.first < 0 || s[c] > s[b.first]) {
      b.second = b.first;
      b.first = c;
    } else if (b.second < 0 || s[c] > s[b.second]) {
      b.second = c;
    }
  }
  if (b.first < 0) return b;
  // H = log Σ e^{s−m} − Σ p (s−m).
  double total = 0, weighted = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const float d = s[c] - s[b.first];
    if (d < -80) continue;
    const double e = std::exp(d);
    total += e;
    weighted += e * d;
  }
  b.score = s[b.first];
  b.p_first = 1 / total;
  b.entropy = std::log(total) - weighted / total;
  if (b.second >= 0) {
    b.gap = static_cast<double>(s[b.first]) - s[b.second];
    b.p_second = std::exp(-b.gap) / total;
  } else {
    b.gap = std::numeric_limits<double>::infinity();
  }
  return b;
}

}  // namespace

std::vector<Belief> beliefs(const Candidates& board, const ClassModel& model, const std::vector<int64_t>& points) {
  constexpr int64_t kNumbers = 7;
  std::vector<double> table(points.size() * kNumbers, 0);
  for_each_piece(board, model, points, [&](const std::vector<int64_t>& piece, const float* s) {
    at::parallel_for(0, static_cast<int64_t>(piece.size()), 64, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const Belief b = belief_of(s + i * model.classes(), model.classes());
        const double numbers[kNumbers] = {static_cast<double>(b.first),
                                          static_cast<double>(b.second),
                                          b.p_first,
                                          b.p_second,
                                          b.entropy,
                                          b.score,
                                          b.gap};
        std::copy_n(numbers, kNumbers, table.data() + piece[i] * kNumbers);
      }
    });
  });
  board.pool().complete(table);
  std::vector<Belief> out(points.size());
  for (size_t k = 0; k < out.size(); ++k) {
    const double* n = table.data() + k * kNumbers;
    out[k] = {static_cast<int64_t>(n[0]), static_cast<int64_t>(n[1]), n[2], n[3], n[4], n[5], n[6]};
  }
  return out;
}

void for_each_belief(const Candidates& board, const ClassModel& model, const std::vector<int64_t>& points,
                     const std::function<void(size_t, const float*)>& f) {
  std::vector<float> p(static_cast<size_t>(model.classes()));
  for_each_piece(board, model, points, [&](const std::vector<int64_t>& piece, const float* s) {
    for (size_t i = 0; i < piece.size(); ++i, s += model.classes()) {
      const float most = *std::max_element(s, s + model.classes());
      double total = 0;
      for (size_t c = 0; c < p.size(); ++c) total += p[c] = s[c] == kNever ? 0 : std::exp(s[c] - most);
      for (float& v : p) v = total > 0 ? static_cast<float>(v / total) : 0;
      f(static_cast<size_t>(piece[i]), p.data());
    }
  });
}

}  // namespace pal::oracle
