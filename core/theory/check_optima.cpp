// check_optima: the minimizers of each loss in a free Z on the supervised graph.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/loss/barlow.h"
#include "core/loss/simclr.h"
#include "core/loss/vic2.h"
#include "core/theory/criterion_loss.h"
#include "core/theory/dense_losses.h"
#include "core/theory/statement.h"

namespace pal::theory {
namespace {

constexpr double kTau = 1;

// The program's criteria with Z as the variable.
SmoothLoss free_vic2(const std::vector<int64_t>& sizes) {
  return criterion_loss(loss::make_vic2({graph::SelfLoops::on, loss::Reduction::sum}), sizes);
}
SmoothLoss free_barlow(const std::vector<int64_t>& sizes) {
  loss::BarlowOptions options;
  options.lambda = 1;
  options.self_loops = graph::SelfLoops::on;
  return criterion_loss(loss::make_barlow(options), sizes);
}

// The number of training points that a linear probe on Z misclassifies.
int64_t probe_mistakes(const Matrix& z, const Matrix& y) {
  const Matrix scores = product(z, solve_normal(product_left_t(z, z), product_left_t(z, y)));
  int64_t wrong = 0;
  for (int64_t i = 0; i < y.rows; ++i) {
    wrong += std::max_element(scores.row(i), scores.row(i) + y.cols) - scores.row(i) !=
             std::max_element(y.row(i), y.row(i) + y.cols) - y.row(i);
  }
  return wrong;
}

Matrix unit_length_rows(const Matrix& z) {
  Matrix u = z;
  for (int64_t i = 0; i < z.rows; ++i) {
    double norm = 0;
    for (int64_t k = 0; k < z.cols; ++k) norm += z(i, k) * z(i, k);
    for (int64_t k = 0; k < z.cols; ++k) u(i, k) /= std::sqrt(norm);
  }
  return u;
}

// Cosines between the classes' anchors: the mean row of each.
Matrix anchor_cosines(const Matrix& z, const Matrix& y) {
  const Matrix anchors = unit_length_rows(product_left_t(y, unit_length_rows(z)));
  return product_right_t(anchors, anchors);
}

double within_spread(const Matrix& z, const Matrix& y) {  // 1 − the smallest cosine of a row with its anchor
  const Matrix u = unit_length_rows(z), similarity = product_right_t(u, unit_length_rows(product_left_t(y, u)));
  double spread = 0;
  for (int64_t i = 0; i < y.rows; ++i) {
    for (int64_t c = 0; c < y.cols; ++c) {
      if (y(i, c) == 1) spread = std::max(spread, 1 - similarity(i, c));
    }
  }
  return spread;
}

Minimum minimize_simclr(const std::vector<int64_t>& sizes, int64_t width) {
  const int64_t n = class_indicators(sizes).rows;
  return minimize(criterion_loss(loss::make_simclr({kTau, loss::Reduction::sum}), sizes), random_normal(n, width, 5),
                  1e-10);
}

// SimCLR with one anchor per class and a weight per anchor: an n-point graph in C variables.
Matrix minimize_anchors(const std::vector<int64_t>& sizes, const std::vector<double>& weights, int64_t width) {
  const auto classes = static_cast<int64_t>(sizes.size());
  const SmoothLoss loss = [&](const Matrix& c, Matrix& d) {
    const Matrix u = unit_length_rows(c), cosine = product_right_t(u, u);
    Matrix w(classes, classes);
    double value = 0;
    for (int64_t j = 0; j < classes; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < classes; ++i)
        sum += (static_cast<double>(sizes[i]) - (i == j)) * std::exp(cosine(j, i) / kTau);
      value += weights[j] * (std::log(sum) - 1 / kTau);
      for (int64_t i = 0; i < classes; ++i) {
        if (i != j) w(j, i) = weights[j] * static_cast<double>(sizes[i]) * std::exp(cosine(j, i) / kTau) / sum / kTau;
      }
    }
    d = product(combine(1, w, 1, transpose(w)), u);
    for (int64_t j = 0; j < classes; ++j) {
      double along = 0, norm = 0;
      for (int64_t k = 0; k < c.cols; ++k) along += d(j, k) * u(j, k), norm += c(j, k) * c(j, k);
      for (int64_t k = 0; k < c.cols; ++k) d(j, k) = (d(j, k) - along * u(j, k)) / std::sqrt(norm);
    }
    return value;
  };
  const Matrix u = unit_length_rows(minimize(loss, random_normal(classes, width, 6), 1e-12).x);
  return product_right_t(u, u);
}

std::vector<double> anchor_weights(const std::vector<int64_t>& sizes, int power) {
  std::vector<double> w;
  for (int64_t n : sizes)
    w.push_back(static_cast<double>(n) *
                (power == 2 ? static_cast<double>(n - 1) : 1));  // a row is not its own neighbor
  return w;
}

CheckedClaim vic2_optimum() {
  const std::vector<int64_t> sizes = {8, 5, 3};
  const Matrix y = class_indicators(sizes), g = supervised_graph(sizes);
  const Minimum m = minimize(free_vic2(sizes), random_normal(g.rows, 5, 4, 0.3), 1e-11);
  const double apart = largest_difference(product_right_t(m.x, m.x), g);
  const int64_t wrong = probe_mistakes(m.x, y);
  return {"optimum", "VIC²: the minimizers are {YR}, a linear probe recovers every label",
          fmt::format("loss {:.0e}, |ZZᵀ − YYᵀ| = {:.0e}, {} labels wrong", m.value, apart, wrong),
          apart < 1e-6 && wrong == 0};
}

CheckedClaim simclr_equal() {
  const std::vector<int64_t> sizes = {6, 6, 6, 6};
  const Matrix y = class_indicators(sizes);
  const Minimum m = minimize_simclr(sizes, 5);
  const Matrix cosines = anchor_cosines(m.x, y);
  double apart = 0;
  for (int64_t a = 0; a < 4; ++a) {
    for (int64_t b = 0; b < 4; ++b) {
      if (a != b) apart = std::max(apart, std::abs(cosines(a, b) + 1.0 / 3));
    }
  }
  const double spread = within_spread(m.x, y);
  const int64_t wrong = probe_mistakes(m.x, y);
  return {"optimum", "SimCLR, equal classes: a simplex, cosines −1/(C−1) between and 1 within classes",
          fmt::format("|cos + 1/3| ≤ {:.0e}, 1 − cos within ≤ {:.0e}, {} labels wrong", apart, spread, wrong),
          apart < 1e-4 && spread < 1e-6 && wrong == 0};
}

CheckedClaim simclr_unequal() {
  const std::vector<int64_t> sizes = {14, 7, 4};
  const Matrix y = class_indicators(sizes);
  const Minimum m = minimize_simclr(sizes, 4);
  const Matrix cosines = anchor_cosines(m.x, y);
  const double squared = largest_difference(cosines, minimize_anchors(sizes, anchor_weights(sizes, 2), 4));
  const double printed = largest_difference(cosines, minimize_anchors(sizes, anchor_weights(sizes, 1), 4));
  const int64_t wrong = probe_mistakes(m.x, y);
  return {
      "optimum",
      "SimCLR, unequal classes: a deformed simplex, anchors weighted N_j² (less the row itself), not the printed N_j",
      fmt::format("cosines {:.3f} {:.3f} {:.3f}; apart {:.0e} with N_j², {:.3f} with N_j; {} labels wrong",
                  cosines(0, 1), cosines(0, 2), cosines(1, 2), squared, printed, wrong),
      squared < 1e-4 && printed > 1e-2 && wrong == 0};
}

CheckedClaim simclr_small_classes() {
  const std::vector<int64_t> sizes = {200, 200, 2, 2};
  const Matrix cosines = minimize_anchors(sizes, anchor_weights(sizes, 2), 5);
  return {"optimum", "SimCLR, two classes nearly all of N: the very small ones merge (printed: orthogonal)",
          fmt::format("cosine of the two small classes {:.3f} (printed 0), of the two large ones {:.3f}", cosines(2, 3),
                      cosines(0, 1)),
          cosines(2, 3) > 0.9 && cosines(0, 1) < -0.9};
}

CheckedClaim barlow_optimum() {
  const std::vector<int64_t> sizes = {8, 5, 3};
  const Matrix y = class_indicators(sizes), g = supervised_graph(sizes);
  const SmoothLoss loss = free_barlow(sizes);
  const Minimum m = minimize(loss, random_normal(g.rows, 3, 8), 1e-12);
  // Z̃ = Y N_c^-½ R: the class means of Z̃, times N_c^½, are a rotation.
  Matrix rotation = product_left_t(y, m.x);
  std::vector<double> norms(3, 0);
  for (int64_t i = 0; i < g.rows; ++i) {
    for (int64_t k = 0; k < 3; ++k) norms[k] += m.x(i, k) * m.x(i, k);
  }
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t k = 0; k < 3; ++k) rotation(c, k) /= std::sqrt(static_cast<double>(sizes[c]) * norms[k]);
  }
  const double apart = largest_difference(product_right_t(rotation, rotation), identity(3));
  const Matrix turn = symmetric_eigen(product_left_t(random_normal(3, 3, 9), random_normal(3, 3, 9))).vectors;
  Matrix ignored;
  const double of_yr = loss(product(y, turn), ignored), literal = literal_barlow(y, g);
  const int64_t wrong = probe_mistakes(m.x, y);
  return {"optimum",
          "BarlowTwins: with Ĝ = Deg^-½ G Deg^-½ the minimizers are {Y N_c^-½ R D}, value 0; the literal loss at Z = Y "
          "is Σ(N_c−1)²",
          fmt::format("loss {:.0e}, |R Rᵀ − I| = {:.0e}, {} labels wrong; at YRD {:.2f}; literal at Y {:.0f} = 49 + 16 "
                      "+ 4 (printed 0)",
                      m.value, apart, wrong, of_yr, literal),
          m.value < 1e-10 && apart < 1e-5 && wrong == 0 && of_yr > 1e-3 && std::abs(literal - 69) < 1e-9};
}

CheckedClaim barlow_wide() {
  const std::vector<int64_t> sizes = {8, 5, 3};
  const Minimum m = minimize(free_barlow(sizes), random_normal(16, 5, 10), 1e-10);
  return {"optimum", "BarlowTwins, K > C, λ = 1: the loss is at least K − C",
          fmt::format("K = 5, C = 3: reached {:.6f}", m.value), std::abs(m.value - 2) < 1e-4};
}

std::vector<CheckedClaim> bayes_optimum() {
  const std::vector<int64_t> sizes = {10, 6, 4};
  const Matrix g = supervised_graph(sizes);
  const Minimum m = minimize(free_vic2(sizes), random_normal(20, 4, 11, 0.3), 1e-11);
  const EigenPairs moment = symmetric_eigen(product_left_t(m.x, m.x));
  double rows = 0, singular = 0;
  for (int64_t i = 0; i < 20; ++i) {
    double square = 0;
    for (int64_t k = 0; k < 4; ++k) square += m.x(i, k) * m.x(i, k);
    rows = std::max(rows, std::abs(std::sqrt(square) - 1));
  }
  for (int c = 0; c < 3; ++c)
    singular = std::max(singular, std::abs(std::sqrt(moment.values[3 - c]) - std::sqrt(static_cast<double>(sizes[c]))));
  // All rows identical: one vector z, Z = 1 zᵀ.
  const Minimum same = minimize(
      [&](const Matrix& z, Matrix& d) {
        Matrix whole(20, 4), gradient;
        for (int64_t i = 0; i < 20; ++i) std::copy(z.row(0), z.row(0) + 4, whole.row(i));
        const double value = literal_vic2(whole, g, &gradient);
        d = Matrix(1, 4);
        for (int64_t i = 0; i < 20; ++i) {
          for (int64_t k = 0; k < 4; ++k) d(0, k) += gradient(i, k);
        }
        return value;
      },
      random_normal(1, 4, 12), 1e-10);
  const double expected = (100.0 + 36 + 16) / 400;
  return {{"Bayes", "free Z: rows of norm 1, singular values (N·P(Y=i))^½ (printed: the latter as rows)",
           fmt::format("rows {:.0e}, singular values {:.0e} away", rows, singular), rows < 1e-6 && singular < 1e-6},
          {"Bayes", "all rows identical: ‖z‖² = Σ P(Y=i)², not 1",
           fmt::format("‖z‖² = {:.6f}, Σ P² = {:.6f} (printed 1)", squared_norm(same.x), expected),
           std::abs(squared_norm(same.x) - expected) < 1e-6}};
}

}  // namespace

std::vector<CheckedClaim> check_optima() {
  std::vector<CheckedClaim> all = {vic2_optimum(),         simclr_equal(),   simclr_unequal(),
                                   simclr_small_classes(), barlow_optimum(), barlow_wide()};
  for (CheckedClaim& s : bayes_optimum()) all.push_back(std::move(s));
  return all;
}

}  // namespace pal::theory
