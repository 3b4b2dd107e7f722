#include "core/theory/dense_losses.h"

#include <cmath>
#include <numeric>

namespace pal::theory {
namespace {

double row_dot(const double* a, const double* b, int64_t n) { return std::inner_product(a, a + n, b, 0.0); }

}  // namespace

Matrix class_indicators(const std::vector<int64_t>& sizes) {
  Matrix y(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), static_cast<int64_t>(sizes.size()));
  int64_t row = 0;
  for (size_t c = 0; c < sizes.size(); ++c) {
    for (int64_t k = 0; k < sizes[c]; ++k) y(row++, static_cast<int64_t>(c)) = 1;
  }
  return y;
}

Matrix supervised_graph(const std::vector<int64_t>& sizes) {
  const Matrix y = class_indicators(sizes);
  return product_right_t(y, y);
}

std::vector<double> degrees(const Matrix& graph) {
  std::vector<double> d(graph.rows);
  for (int64_t i = 0; i < graph.rows; ++i) d[i] = std::accumulate(graph.row(i), graph.row(i) + graph.cols, 0.0);
  return d;
}

double literal_vic2(const Matrix& z, const Matrix& graph, Matrix* gradient) {
  const Matrix residual = combine(1, product_right_t(z, z), -1, graph);
  if (gradient != nullptr) *gradient = combine(4, product(residual, z), 0, z);
  return squared_norm(residual);
}

double literal_barlow(const Matrix& z, const Matrix& graph) {
  Matrix unit = z;
  for (int64_t k = 0; k < z.cols; ++k) {
    double norm = 0;
    for (int64_t i = 0; i < z.rows; ++i) norm += z(i, k) * z(i, k);
    for (int64_t i = 0; i < z.rows; ++i) unit(i, k) /= std::sqrt(norm);
  }
  return squared_norm(combine(1, product_left_t(unit, product(graph, unit)), -1, identity(z.cols)));
}

double printed_repulsion(const double* a, const double* b, int64_t width) {
  const double dot = row_dot(a, b, width);
  return dot * dot - row_dot(a, a, width) - row_dot(b, b, width);
}

double literal_printed_vic2(const Matrix& z, const Matrix& graph, Matrix* gradient) {
  double value = 0;
  for (int64_t i = 0; i < z.rows; ++i) {
    for (int64_t j = 0; j < z.rows; ++j) {
      double distance = 0;
      for (int64_t k = 0; k < z.cols; ++k) distance += std::pow(z(i, k) - z(j, k), 2);
      value += graph(i, j) * distance + printed_repulsion(z.row(i), z.row(j), z.cols);
    }
  }
  if (gradient != nullptr) {
    // Σ(z_iᵀz_j)² gives 4 ZZᵀZ, the norms −4N Z, the distances 4 (Deg − G) Z.
    *gradient = combine(4, product(product_right_t(z, z), z), -4, product(graph, z));
    const std::vector<double> d = degrees(graph);
    for (int64_t i = 0; i < z.rows; ++i) {
      for (int64_t k = 0; k < z.cols; ++k) (*gradient)(i, k) += 4 * (d[i] - static_cast<double>(z.rows)) * z(i, k);
    }
  }
  return value;
}

}  // namespace pal::theory
