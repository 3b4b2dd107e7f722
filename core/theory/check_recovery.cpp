// check_recovery: recovers labels from a graph by eigendecomposition and one labeled example (template) per class.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/theory/dense_losses.h"
#include "core/theory/statement.h"

namespace pal::theory {
namespace {

// P |D|^½ of the nonzero eigenvalues, one row per sample.
Matrix spectral_rows(const Matrix& graph, std::vector<double>* kept) {
  const EigenPairs pairs = symmetric_eigen(graph);
  double largest = 0;
  for (double v : pairs.values) largest = std::max(largest, std::abs(v));
  kept->clear();
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < graph.rows; ++i) {
    if (std::abs(pairs.values[i]) > 1e-9 * largest) chosen.push_back(i), kept->push_back(pairs.values[i]);
  }
  Matrix rows(graph.rows, static_cast<int64_t>(chosen.size()));
  for (int64_t i = 0; i < rows.rows; ++i) {
    for (size_t c = 0; c < chosen.size(); ++c) {
      rows(i, static_cast<int64_t>(c)) = pairs.vectors(chosen[c], i) * std::sqrt(std::abs(pairs.values[chosen[c]]));
    }
  }
  return rows;
}

double row_distance(const Matrix& m, int64_t i, int64_t j) {
  double square = 0;
  for (int64_t k = 0; k < m.cols; ++k) square += std::pow(m(i, k) - m(j, k), 2);
  return std::sqrt(square);
}

CheckedClaim supervised_recovery() {
  const std::vector<int64_t> sizes = {9, 5, 3, 7};
  const Matrix y = class_indicators(sizes);
  std::vector<double> kept;
  const Matrix rows = spectral_rows(product_right_t(y, y), &kept);
  // The templates' rows A satisfy A R = I: R = A⁻¹ = Aᵀ, the rotation.
  Matrix templates(4, rows.cols);
  for (int64_t c = 0, first = 0; c < 4; first += sizes[c++])
    std::copy(rows.row(first), rows.row(first) + rows.cols, templates.row(c));
  const double rotation = largest_difference(product_right_t(templates, templates), identity(4));
  const double apart = largest_difference(product_right_t(rows, templates), y);
  return {"recovery", "G = YYᵀ: P D^½ is Y up to a rotation, which C templates fix",
          fmt::format("max |P D^½ R − Y| = {:.0e}, |R Rᵀ − I| = {:.0e}", apart, rotation),
          apart < 1e-10 && rotation < 1e-10};
}

// The number of pairs that two rankings order differently.
int kendall(std::array<int, 3> a, std::array<int, 3> b) {
  int distance = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = i + 1; j < 3; ++j) distance += (a[i] < a[j]) != (b[i] < b[j]);
  }
  return distance;
}

CheckedClaim loss_graph_recovery() {
  std::vector<std::array<int, 3>> rankings;
  std::array<int, 3> ranking = {0, 1, 2};
  do rankings.push_back(ranking);
  while (std::next_permutation(ranking.begin(), ranking.end()));
  const std::vector<int64_t> sizes = {4, 3, 5, 2, 6, 3};
  const Matrix y = class_indicators(sizes);
  Matrix table(6, 6);
  for (int a = 0; a < 6; ++a) {
    for (int b = 0; b < 6; ++b) table(a, b) = -kendall(rankings[a], rankings[b]);
  }
  const Matrix graph = product_right_t(product(y, table), y);
  const EigenPairs spectrum = symmetric_eigen(table);
  std::vector<double> kept;
  const Matrix rows = spectral_rows(graph, &kept);
  double within = 0, between = INFINITY;
  int wrong = 0;
  std::vector<int64_t> label, first;
  for (size_t c = 0; c < sizes.size(); ++c) {
    first.push_back(static_cast<int64_t>(label.size()));
    label.insert(label.end(), sizes[c], static_cast<int64_t>(c));
  }
  for (int64_t i = 0; i < rows.rows; ++i) {
    for (int64_t j = 0; j < rows.rows; ++j) {
      if (label[i] == label[j])
        within = std::max(within, row_distance(rows, i, j));
      else
        between = std::min(between, row_distance(rows, i, j));
    }
    const auto nearest = std::min_element(first.begin(), first.end(), [&](int64_t a, int64_t b) {
      return row_distance(rows, i, a) < row_distance(rows, i, b);
    });
    wrong += nearest - first.begin() != label[i];
  }
  return {
      "recovery",
      "G = −ℓ (Kendall, 6 rankings): rows of P|D|^½ name the class by the nearest template; the printed L^½ is not "
      "real",
      fmt::format(
          "{} of {} labels wrong; apart {:.0e} within, {:.2f} between classes; L has eigenvalues from {:.2f} to {:.2f}",
          wrong, rows.rows, within, between, spectrum.values.front(), spectrum.values.back()),
      wrong == 0 && within < 1e-6 && between > 0.1 && spectrum.values.front() < -1e-6 && spectrum.values.back() > 1e-6};
}

}  // namespace

std::vector<CheckedClaim> check_recovery() { return {supervised_recovery(), loss_graph_recovery()}; }

}  // namespace pal::theory
