#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/theory/kernel_method.h"
#include "kernels/base/error.h"

namespace pal::theory {
namespace {

// Columns vectors_i · scale(value_i) of the eigenvalues above the cutoff: (n, r).
template <class Scale>
Matrix scaled_columns(const EigenPairs& pairs, double relative_cutoff, std::vector<double>* kept, const Scale& scale) {
  const int64_t n = pairs.vectors.rows;
  const double floor = relative_cutoff * (n > 0 ? pairs.values.back() : 0);
  kept->clear();
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < n; ++i) {
    if (pairs.values[i] > floor) chosen.push_back(i), kept->push_back(pairs.values[i]);
  }
  Matrix out(n, static_cast<int64_t>(chosen.size()));
  for (size_t c = 0; c < chosen.size(); ++c) {
    const double s = scale(pairs.values[chosen[c]]);
    for (int64_t k = 0; k < n; ++k) out(k, static_cast<int64_t>(c)) = s * pairs.vectors(chosen[c], k);
  }
  return out;
}

void add_to(Matrix& sum, const Matrix& term, double scale) {
  for (size_t k = 0; k < sum.data.size(); ++k) sum.data[k] += scale * term.data[k];
}

}  // namespace

NystromMethod::NystromMethod(const ToySet& train, const NystromOptions& options) : train_(train), options_(options) {
  PAL_CHECK(options.landmarks >= options.kernel.width && options.landmarks <= train.x.rows, "--landmarks",
            options.landmarks,
            "give at least the width of the representation and at most the number of points, " +
                std::to_string(train.x.rows));
  const int64_t m = options.landmarks;
  landmarks_ = Matrix(m, train.x.cols);
  std::copy_n(train.x.data.begin(), landmarks_.data.size(), landmarks_.data.begin());
  square_ = Matrix(m, m);
  for (int64_t begin = 0; begin < train.x.rows; begin += options.tile) {
    std::vector<int64_t> rows(std::min(options.tile, train.x.rows - begin));
    std::iota(rows.begin(), rows.end(), begin);
    const Matrix c = kernel_rows(rows);
    add_to(square_, product_left_t(c, c), 1);
  }
  std::vector<double> kept;
  const auto inverse_root = [](double v) { return 1 / std::sqrt(v); };
  const Matrix root = scaled_columns(symmetric_eigen(exp_kernel(landmarks_, landmarks_, options.kernel.sigma)),
                                     options.relative_cutoff, &kept, inverse_root);
  const Matrix gram = product(product_left_t(root, square_), root);  // ΦᵀΦ, Φ = C R
  basis_ = product(root, scaled_columns(symmetric_eigen(gram), options.relative_cutoff, &kernel_values_, inverse_root));
}

Matrix NystromMethod::kernel_rows(const std::vector<int64_t>& rows) const {
  Matrix points(static_cast<int64_t>(rows.size()), train_.x.cols);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(train_.x.row(rows[i]), points.cols, points.row(static_cast<int64_t>(i)));
  return exp_kernel(points, landmarks_, options_.kernel.sigma);
}

Matrix NystromMethod::fit(const std::vector<char>& known, std::vector<double>* eigenvalues) const {
  const int64_t m = options_.landmarks;
  Matrix middle = square_, sums(m, kToyClasses);  // CᵀGC; P
  std::vector<int64_t> rows;
  const auto take = [&] {
    const Matrix c = kernel_rows(rows);
    add_to(middle, product_left_t(c, c), -1);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (int64_t k = 0; k < m; ++k) sums(k, train_.y[rows[i]]) += c(static_cast<int64_t>(i), k);
    }
    rows.clear();
  };
  for (int64_t i = 0; i < train_.x.rows; ++i) {
    if (known[i]) rows.push_back(i);
    if (static_cast<int64_t>(rows.size()) == options_.tile) take();
  }
  if (!rows.empty()) take();
  Matrix signs(kToyClasses, kToyClasses, -1);
  for (int c = 0; c < kToyClasses; ++c) signs(c, c) = 1;
  add_to(middle, product_right_t(product(sums, signs), sums), 1);

  Matrix reduced = product(product_left_t(basis_, middle), basis_);
  for (int64_t i = 0; i < reduced.rows; ++i) {
    for (int64_t j = 0; j < i; ++j) reduced(i, j) = reduced(j, i) = (reduced(i, j) + reduced(j, i)) / 2;
    reduced(i, i) -= options_.kernel.lambda / kernel_values_[i];
  }
  TopEigen solver(reduced.rows, options_.kernel.width);
  solver.solve(reduced);
  if (eigenvalues != nullptr) *eigenvalues = solver.values();
  return product_right_t(basis_, solver.vectors());
}

Matrix NystromMethod::represent(const Matrix& points, const Matrix& coefficients) const {
  Matrix out(points.rows, coefficients.cols);
  for (int64_t begin = 0; begin < points.rows; begin += options_.tile) {
    Matrix tile(std::min(options_.tile, points.rows - begin), points.cols);
    std::copy_n(points.row(begin), tile.data.size(), tile.data.begin());
    const Matrix z = product(exp_kernel(tile, landmarks_, options_.kernel.sigma), coefficients);
    std::copy(z.data.begin(), z.data.end(), out.data.begin() + begin * out.cols);
  }
  return out;
}

}  // namespace pal::theory
