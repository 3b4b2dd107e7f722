// check_identities: the identities behind the losses, in double precision on random input.
#include <fmt/format.h>

#include <cmath>

#include "core/loss/simclr.h"
#include "core/theory/criterion_loss.h"
#include "core/theory/dense_losses.h"
#include "core/theory/one_thread.h"
#include "core/theory/statement.h"

namespace pal::theory {
namespace {

constexpr int64_t kRows = 12, kColumns = 4;

double relative_gap(double a, double b) { return std::abs(a - b) / (std::abs(a) + std::abs(b) + 1e-300); }

CheckedClaim identity_statement(const std::string& claim, double a, double b, const std::string& more = "") {
  return {"identity", claim, fmt::format("{:.6g} = {:.6g}, apart {:.0e}{}", a, b, relative_gap(a, b), more),
          relative_gap(a, b) < 1e-12};
}

Matrix random_weights() {
  const Matrix a = random_normal(kRows, kRows, 2);
  return combine(0.5, a, 0.5, transpose(a));
}

Matrix covariance_of(const Matrix& z, Matrix* centered_rows) {
  Matrix centered = z;
  for (int64_t k = 0; k < z.cols; ++k) {
    double mean = 0;
    for (int64_t i = 0; i < z.rows; ++i) mean += z(i, k) / static_cast<double>(z.rows);
    for (int64_t i = 0; i < z.rows; ++i) centered(i, k) -= mean;
  }
  *centered_rows = centered;
  const Matrix c = product_left_t(centered, centered);
  return combine(1.0 / static_cast<double>(z.rows - 1), c, 0, c);
}

CheckedClaim repulsion_sum(const Matrix& z) {
  double sum = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kRows; ++j) sum += printed_repulsion(z.row(i), z.row(j), kColumns);
  }
  const Matrix moment = combine(1, product_left_t(z, z), -static_cast<double>(kRows), identity(kColumns));
  return identity_statement("Σ R(z_i, z_j) = ‖ZᵀZ − N·I‖² − N²K", sum,
                            squared_norm(moment) - static_cast<double>(kRows * kRows * kColumns));
}

CheckedClaim printed_difference(const Matrix& z) {
  const Matrix g = random_weights(), zz = product_right_t(z, z);
  const std::vector<double> d = degrees(g);
  double expected = 0;
  for (int64_t i = 0; i < kRows; ++i) expected += 2 * (d[i] - static_cast<double>(kRows)) * zz(i, i);
  const double difference = literal_printed_vic2(z, g) - (literal_vic2(z, g) - squared_norm(g));
  return identity_statement("printed sampled VIC² over all pairs − (‖ZZᵀ−G‖² − ‖G‖²) = 2 Tr((Deg − N·I) ZZᵀ)",
                            difference, expected, "; printed: 0");
}

CheckedClaim covariance_by_gram(const Matrix& z) {
  Matrix centered;
  const Matrix c = covariance_of(z, &centered);
  const Matrix gram = product_right_t(centered, centered);
  double off = 0, diagonal = 0;
  for (int64_t k = 0; k < kColumns; ++k) {
    for (int64_t l = 0; l < kColumns; ++l) (k == l ? diagonal : off) += c(k, l) * c(k, l);
  }
  return identity_statement("Σ_{k≠l} C_kl² = ‖Gram‖² − Σ C_kk²: no K×K matrix needed", off,
                            squared_norm(gram) / static_cast<double>((kRows - 1) * (kRows - 1)) - diagonal);
}

CheckedClaim clique_sum(const Matrix& z) {
  double pairs = 0, squares = 0, of_sum = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kRows; ++j) {
      for (int64_t k = 0; k < kColumns; ++k) pairs += std::pow(z(i, k) - z(j, k), 2);
    }
  }
  for (int64_t k = 0; k < kColumns; ++k) {
    double sum = 0;
    for (int64_t i = 0; i < kRows; ++i) sum += z(i, k), squares += z(i, k) * z(i, k);
    of_sum += sum * sum;
  }
  return identity_statement("a clique: Σ ‖z_i − z_j‖² = 2n Σ‖z_i‖² − 2‖Σ z_i‖²", pairs,
                            2 * static_cast<double>(kRows) * squares - 2 * of_sum);
}

// Rows i and i + N/2 are the views of one sample.
CheckedClaim two_views(const Matrix& z) {
  const int64_t half = kRows / 2;
  const double tau = 0.5;
  loss::Batch batch = class_batch(std::vector<int64_t>(half, 1));  // every sample its own block
  batch.views = batch.graph.views = 2;
  double textbook = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    const auto cosine = [&](int64_t j) {
      double ab = 0, aa = 0, bb = 0;
      for (int64_t k = 0; k < kColumns; ++k) ab += z(i, k) * z(j, k), aa += z(i, k) * z(i, k), bb += z(j, k) * z(j, k);
      return ab / std::sqrt(aa * bb);
    };
    double sum = 0;
    for (int64_t j = 0; j < kRows; ++j) sum += j == i ? 0 : std::exp(cosine(j) / tau);
    textbook -= std::log(std::exp(cosine((i + half) % kRows) / tau) / sum) / static_cast<double>(kRows);
  }
  return identity_statement(
      "two views per sample: NT-Xent = SimCLR on the graph / 2N", textbook,
      apply_criterion(loss::make_simclr({tau, loss::Reduction::sum}), z, batch).value / static_cast<double>(kRows));
}

}  // namespace

std::vector<CheckedClaim> check_identities() {
  const Matrix z = random_normal(kRows, kColumns, 1);
  return {repulsion_sum(z), printed_difference(z), covariance_by_gram(z), clique_sum(z), two_views(z)};
}

std::vector<CheckedClaim> check_statements(const Progress& progress) {
  const OneThread scope;
  std::vector<CheckedClaim> all;
  const auto groups = {check_identities, check_recovery, check_optima, check_sampling};
  const auto total = static_cast<int64_t>(groups.size());
  int64_t done = 0;
  for (auto* check : groups) {
    if (progress) progress(done++, total);
    for (CheckedClaim& s : check()) all.push_back(std::move(s));
  }
  if (progress) progress(total, total);
  return all;
}

}  // namespace pal::theory
