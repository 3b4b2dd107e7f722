#include "core/eval/diagnostics.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/loss/contrast.h"
#include "core/loss/graph_terms.h"
#include "core/loss/halo.h"
#include "kernels/moments.h"

namespace pal::eval {

double effective_rank(const at::Tensor& z, const loss::Batch& batch, comm::Comm& comm) {
  const at::NoGradGuard no_grad;
  const int64_t rows = batch.global_rows();
  if (rows < 2) return 0;
  const at::Tensor mean = z.sum(at::IntArrayRef{0}, false, at::kDouble);
  comm.all_reduce(mean);
  const at::Tensor centered = (z - mean / static_cast<double>(rows)).to(z.scalar_type());
  double trace = 0, square = 0;
  if (kernels::covariance_form_wins(rows, z.size(1), z.element_size(), sizeof(double))) {
    const at::Tensor product = centered.t().mm(centered).to(at::kDouble).contiguous();
    comm.all_reduce(product);
    trace = product.diagonal().sum().item<double>();
    square = product.square().sum().item<double>();
  } else {
    const at::Tensor product = centered.mm(loss::gather_rows(centered, batch, comm).t());
    const std::vector<double> sums = loss::sum_shares(
        {centered.to(at::kDouble).square().sum().view({1}), product.to(at::kDouble).square().sum().view({1})}, comm);
    trace = sums[0];
    square = sums[1];
  }
  return square > 0 ? trace * trace / square : 0;
}

namespace {

constexpr double kPointedSpread = 0.02, kLineRank = 1.2;
constexpr int kLooks = 3;

// Collective. (D) means and standard deviations over all rows of all ranks, fp64.
std::pair<at::Tensor, at::Tensor> columns(const at::Tensor& z, double rows, comm::Comm& comm) {
  const at::Tensor mean = z.sum(at::IntArrayRef{0}, false, at::kDouble);
  comm.all_reduce(mean);
  mean.div_(rows);
  const at::Tensor square = at::linalg_vector_norm(z - mean, 2, at::IntArrayRef{0}).square();
  comm.all_reduce(square);
  return {mean, (square / rows).sqrt()};
}

}  // namespace

Diagnostics diagnose(const at::Tensor& z, const loss::Batch& batch, comm::Comm& comm) {
  Diagnostics d;
  const auto rows = static_cast<double>(batch.global_rows());
  const auto [mean, std] = columns(z, rows, comm);
  d.mean_abs_mean = mean.abs().mean().item<double>();
  d.mean_std = std.mean().item<double>();
  d.min_std = std.min().item<double>();
  d.unit_std = columns(loss::unit_rows(z).rows, rows, comm).second.mean().item<double>() *
               std::sqrt(static_cast<double>(z.size(1)));
  d.effective_rank = effective_rank(z, batch, comm);
  const graph::PairCounts counts = graph::count_pairs(batch.graph);
  const double pairs = std::max(1.0, rows * (rows - 1));
  d.positive_share = counts.positive / pairs;
  d.negative_share = counts.negative / pairs;
  d.partnered_share = counts.partnered / std::max(1.0, rows);
  d.unknown_share = 1 - d.positive_share - d.negative_share;
  return d;
}

std::string collapse_text(double unit_std, double effective_rank, int64_t dims) {
  if (unit_std < kPointedSpread)
    return fmt::format("they point the same way (spread {:.3g} of the sphere's)", unit_std);
  if (dims > 2 && effective_rank < kLineRank)
    return fmt::format("they lie on a line (effective rank {:.2f} of {})", effective_rank, dims);
  return "";
}

std::string CollapseWatch::check(const Diagnostics& d, int64_t dims) {
  const std::string wrong = collapse_text(d.unit_std, d.effective_rank, dims);
  in_a_row_ = wrong.empty() ? 0 : in_a_row_ + 1;
  if (warned_ || in_a_row_ < kLooks) return "";
  warned_ = true;
  return fmt::format(
      "the embeddings have collapsed: {} in {} logged steps in a row; raise the terms against collapse or lower the "
      "learning rate",
      wrong, kLooks);
}

}  // namespace pal::eval
