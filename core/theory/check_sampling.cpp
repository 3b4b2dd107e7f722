// check_sampling: the losses over sampled pairs: bias, minimizers, and gradient descent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/loss/sampled_vic2.h"
#include "core/theory/criterion_loss.h"
#include "core/theory/dense_losses.h"
#include "core/theory/kernel_method.h"
#include "core/theory/statement.h"
#include "kernels/base/philox.h"

namespace pal::theory {
namespace {

// One pair (i, j) is drawn uniformly, I = J = {(i, j)}, π = 1/N²: the expectation is the mean over all N² draws.
double expected_value(loss::SampledForm form, const Matrix& z, loss::Batch batch) {
  const loss::Criterion criterion = loss::make_sampled_vic2({form, graph::SelfLoops::on, loss::Reduction::sum});
  const auto draws = static_cast<double>(z.rows * z.rows);
  double sum = 0;
  for (int64_t i = 0; i < z.rows; ++i) {
    for (int64_t j = 0; j < z.rows; ++j) {
      batch.related = batch.repelled = loss::PairSample{{i}, {j}, {1 / draws}};
      sum += apply_criterion(criterion, z, batch).value / draws;
    }
  }
  return sum;
}

CheckedClaim bias_of_samples() {
  const std::vector<int64_t> sizes = {6, 4};
  const Matrix g = supervised_graph(sizes), z = random_normal(10, 3, 21);
  const double ours = expected_value(loss::SampledForm::unbiased, z, class_batch(sizes)),
               printed = expected_value(loss::SampledForm::printed, z, class_batch(sizes));
  const double target = literal_vic2(z, g) - squared_norm(g);
  return {"sampled",
          "ours, with 1/π, is unbiased for ‖ZZᵀ−G‖² − ‖G‖²; the printed form is not unless every degree is N",
          fmt::format("expected ours {:.6f}, printed {:.6f}, loss {:.6f}", ours, printed, target),
          std::abs(ours - target) < 1e-9 * std::abs(target) && std::abs(printed - target) > 1};
}

CheckedClaim unbounded_below() {
  // J = {(0, 1)} only: orthogonal z_0 and z_1 of growing length.
  const auto value = [](double s) {
    const double a[2] = {s, 0}, b[2] = {0, s};
    return printed_repulsion(a, b, 2);
  };
  return {"sampled", "printed form with a fixed sparse J is unbounded below: J is drawn anew every step",
          fmt::format("‖z‖ = 1: {:.0f}, 10: {:.0f}, 1000: {:.0f}", value(1), value(10), value(1000)),
          value(1000) < value(10) && value(10) < value(1)};
}

// The eigenvectors of the k largest eigenvalues, one per row.
Matrix top_rows(const Matrix& a, int64_t k) {
  TopEigen solver(a.rows, k);
  solver.solve(a);
  return solver.vectors();
}

CheckedClaim printed_minimizer() {
  const Matrix g = supervised_graph({9, 5, 2});
  const Minimum m = minimize([&](const Matrix& z, Matrix& d) { return literal_printed_vic2(z, g, &d); },
                             random_normal(16, 3, 22, 0.5), 1e-9);
  Matrix shifted = g;
  const std::vector<double> d = degrees(g);
  for (int64_t i = 0; i < 16; ++i) shifted(i, i) -= d[i];
  // G − Deg has the eigenvalue 0 once per class, with the class indicators as eigenvectors: the eigenspace of G.
  const EigenPairs of_z = symmetric_eigen(product_left_t(m.x, m.x));
  const EigenPairs of_shift = symmetric_eigen(shifted), of_g = symmetric_eigen(g);
  double to_shift = 0, to_g = 0;
  for (int64_t k = 0; k < 3; ++k) {
    to_shift = std::max(to_shift, std::abs(of_z.values[2 - k] - (of_shift.values[15 - k] + 16)));
    to_g = std::max(to_g, std::abs(of_z.values[2 - k] - of_g.values[15 - k]));
  }
  return {"sampled", "the printed form is minimized by the top of G − Deg (+ N·I), not of G",
          fmt::format("squared singular values of Z: {:.0e} from G − Deg + N·I, {:.1f} from G", to_shift, to_g),
          to_shift < 1e-5 && to_g > 1};
}

struct SmallProblem {
  std::vector<int64_t> sizes;
  Matrix graph, inverse;  // G, K⁻¹
};
SmallProblem small_problem() {
  SmallProblem p{{7, 5, 4}, supervised_graph({7, 5, 4}), {}};
  p.inverse = symmetric_pseudo_inverse(exp_kernel(random_normal(16, 2, 23), random_normal(16, 2, 23), 1.0), 0);
  return p;
}

// ‖ZZᵀ − G‖² + weight · Tr ZᵀK⁻¹Z against the closed form with this λ: the largest difference of ZZᵀ.
double tikhonov_difference(double weight, double lambda) {
  const SmallProblem p = small_problem();
  const Minimum m = minimize(
      [&](const Matrix& z, Matrix& d) {
        const double value = literal_vic2(z, p.graph, &d);
        const Matrix kz = product(p.inverse, z);
        d = combine(1, d, 2 * weight, kz);
        return value + weight * trace_product(z, kz);
      },
      random_normal(16, 5, 24, 0.5), 1e-10);
  const EigenPairs pairs = symmetric_eigen(combine(1, p.graph, -lambda, p.inverse));
  Matrix closed(16, 16);
  for (int64_t t = 0; t < 5; ++t) {  // directions with a positive eigenvalue only
    const double value = pairs.values[15 - t];
    for (int64_t i = 0; value > 0 && i < 16; ++i) {
      for (int64_t j = 0; j < 16; ++j) closed(i, j) += value * pairs.vectors(15 - t, i) * pairs.vectors(15 - t, j);
    }
  }
  return largest_difference(product_right_t(m.x, m.x), closed);
}

CheckedClaim tikhonov() {
  const double lambda = 0.1, ours = tikhonov_difference(2 * lambda, lambda),
               printed = tikhonov_difference(lambda, lambda);
  return {"kernel", "VIC² + 2λ Tr ZᵀK⁻¹Z is minimized by the top of G − λK⁻¹ (printed: λ Tr ZᵀK⁻¹Z)",
          fmt::format("|ZZᵀ − closed form| = {:.0e} with 2λ, {:.3f} with λ", ours, printed),
          ours < 1e-5 && printed > 1e-3};
}

// A strongly convex case: G = −A with A positive, one shared shift θ of fixed rows, z_i = θ + c_i.
CheckedClaim rate_of_descent() {
  constexpr int64_t n = 8, width = 2;
  const Matrix c = random_normal(n, width, 25, 0.4);
  Matrix g = identity(n);
  for (double& v : g.data) v *= -2;
  const auto rows_at = [&](const Matrix& theta) {
    Matrix z = c;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < width; ++k) z(i, k) += theta(0, k);
    }
    return z;
  };
  const SmoothLoss loss = [&](const Matrix& theta, Matrix& d) {
    Matrix gradient;
    const double value = literal_vic2(rows_at(theta), g, &gradient);
    d = Matrix(1, width);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < width; ++k) d(0, k) += gradient(i, k);
    }
    return value;
  };
  const double best = minimize(loss, Matrix(1, width), 1e-12).value;
  const std::vector<int64_t> horizons = {1000, 10000, 100000};
  std::vector<double> gaps(horizons.size(), 0);
  constexpr int kRuns = 24;
  const double modulus = 8 * n;  // of 4 Tr ZᵀAZ in θ, A = 2 I, halved: the step is c/t with c above 1/modulus
  for (int run = 0; run < kRuns; ++run) {
    Random random(26, Purpose::theory, 200, static_cast<uint64_t>(run));
    Matrix theta(1, width, 0.5), ignored;
    size_t next = 0;
    for (int64_t t = 1; t <= horizons.back(); ++t) {
      const auto i = static_cast<int64_t>(random.below(n)), j = static_cast<int64_t>(random.below(n));
      double zi[width], zj[width], dot = 0;
      for (int64_t k = 0; k < width; ++k)
        zi[k] = theta(0, k) + c(i, k), zj[k] = theta(0, k) + c(j, k), dot += zi[k] * zj[k];
      const double weight = n * n * 2 * (dot - g(i, j)), step = 2 / (modulus * (static_cast<double>(t) + 200));
      for (int64_t k = 0; k < width; ++k) theta(0, k) -= step * weight * (zi[k] + zj[k]);
      if (t == horizons[next]) gaps[next++] += (loss(theta, ignored) - best) / kRuns;
    }
  }
  const double slope = std::log(gaps[2] / gaps[0]) / std::log(100.0);
  return {"descent", "O(1/T) on a strongly convex case (G = −2I, one shared shift), pairs drawn one by one",
          fmt::format("gap {:.1e}, {:.1e}, {:.1e} after 10³, 10⁴, 10⁵ pairs: slope {:.2f}", gaps[0], gaps[1], gaps[2],
                      slope),
          slope < -0.75 && slope > -1.3};
}

// The program's sampled criterion, Z = L B with K = L Lᵀ: against the closed form.
CheckedClaim descent_reaches_closed_form() {
  const SmallProblem p = small_problem();
  constexpr int64_t n = 16, width = 4, pairs = 64;
  const double lambda = 0.05;
  // The square root of K, from the eigenvectors of the inverse.
  const EigenPairs inverse = symmetric_eigen(p.inverse);
  Matrix scaled = inverse.vectors;
  for (int64_t e = 0; e < n; ++e) {
    for (int64_t k = 0; k < n; ++k) scaled(e, k) /= std::sqrt(inverse.values[e]);
  }
  const Matrix root = product_left_t(inverse.vectors, scaled);
  Matrix b = random_normal(n, width, 27, 0.3);
  const loss::Criterion criterion =
      loss::make_sampled_vic2({loss::SampledForm::unbiased, graph::SelfLoops::on, loss::Reduction::sum});
  loss::Batch batch = class_batch(p.sizes);
  for (int64_t t = 0; t < 20000; ++t) {
    batch.related = batch.repelled = loss::draw_pairs(n, pairs, loss::PairDraw::any, 28, static_cast<uint64_t>(t));
    const Matrix dz = as_matrix(apply_criterion(criterion, product(root, b), batch).dz);
    const double step = 1e-3 / (1 + static_cast<double>(t) / 2000);
    b = combine(1 - step * 4 * lambda, b, -step, product(root, dz));
  }
  const Matrix z = product(root, b), t = combine(1, p.graph, -lambda, p.inverse);
  const EigenPairs closed = symmetric_eigen(t);
  int64_t positive = 0;
  while (positive < width && closed.values[n - 1 - positive] > 0) ++positive;
  const double sine = largest_angle_sine(top_rows(product_right_t(z, z), positive), top_rows(t, positive));
  return {"descent", "SGD on sampled (I, J), our form, reaches the closed-form kernel solution",
          fmt::format("largest angle of the {} directions with positive eigenvalue: {:.4f} rad", positive,
                      std::asin(std::min(1.0, sine))),
          sine < 0.05};
}

}  // namespace

std::vector<CheckedClaim> check_sampling() {
  return {bias_of_samples(), unbounded_below(), printed_minimizer(),
          tikhonov(),        rate_of_descent(), descent_reaches_closed_form()};
}

}  // namespace pal::theory
