#include "core/loss/barlow.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "core/loss/graph_terms.h"
#include "core/ops/moments.h"
#include "core/ops/tensors.h"

namespace pal::loss {
namespace {

constexpr double kBatchNormEpsilon = 1e-5;  // PyTorch's default
constexpr double kShortestColumn = 1e-12;

// The loss of a correlation matrix C (D, D) fp64, and its gradient M.
struct Correlation {
  at::Tensor terms;     // (2) on and off the diagonal, before loss.scale
  at::Tensor gradient;  // (D, D)
};
Correlation correlation_terms(const at::Tensor& c, const BarlowOptions& options) {
  const at::Tensor gap = 1 - c.diagonal(), square = c.square();
  Correlation result;
  result.terms =
      at::cat({gap.square().sum().view({1}), (options.lambda * (square.sum() - square.diagonal().sum())).view({1})});
  result.gradient = c * (2 * options.lambda * options.scale);
  result.gradient.diagonal().copy_(gap * (-2 * options.scale));
  return result;
}

// Collective. Ĝ·rows: a product with G between two scalings by degree^-½. rows (local rows of `batch`, any width).
at::Tensor normalized_product(const at::Tensor& rows, const Batch& batch, comm::Comm& comm,
                              graph::SelfLoops self_loops) {
  std::vector<double> root = degrees(batch.graph, self_loops, graph::Weights::absolute);
  for (double& d : root) d = d > 0 ? 1 / std::sqrt(d) : 0;
  const std::vector<double> own(root.begin() + batch.begin, root.begin() + batch.end);
  const at::Tensor scale = ops::to_device_of(rows, own).to(rows.scalar_type()).repeat({batch.views}).unsqueeze(1);
  const at::Tensor out = at::zeros_like(rows);
  product_share(out, (rows * scale).contiguous(), batch, comm, self_loops, 1);
  return out.mul_(scale);
}

LossResult with_terms(const at::Tensor& terms, double weight, const at::Tensor& dz) {
  const std::vector<double> numbers = ops::to_host(terms);
  return result_of({{"invariance", weight * numbers[0]}, {"redundancy", weight * numbers[1]}}, dz);
}

LossResult barlow_graph(const BarlowOptions& options, const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
  const at::Tensor squares = at::linalg_vector_norm(z, 2, at::IntArrayRef{0}, false, at::kDouble).square_();
  comm.all_reduce(squares);
  const at::Tensor norms = squares.sqrt();
  const at::Tensor inverse = norms.reciprocal().masked_fill_(norms < kShortestColumn, 0).to(z.scalar_type());
  const at::Tensor unit = z * inverse;
  const at::Tensor product = normalized_product(unit, batch, comm, options.self_loops);
  const at::Tensor c = unit.to(at::kDouble).t().mm(product.to(at::kDouble));
  comm.all_reduce(c);
  const Correlation at_c = correlation_terms(c, options);
  const at::Tensor m = at_c.gradient * 2;
  // z̃_kᵀ (ĜZ̃ m)_k, the part along the column itself, is (C m)_kk.
  const at::Tensor along = (c * m.t()).sum(1).to(z.scalar_type());
  const at::Tensor dz = product.mm(m.to(z.scalar_type())).sub_(unit * along).mul_(inverse);
  return with_terms(at_c.terms, options.scale, dz);
}

// (V, n, D) with columns of mean 0 and variance 1 over all ranks, and 1/σ (V, 1, D).
struct Standardized {
  at::Tensor rows, inverse;
};
Standardized standardize(const at::Tensor& views, const Batch& batch, comm::Comm& comm) {
  const auto n = static_cast<double>(batch.samples.size());
  const at::Tensor mean = views.sum(at::IntArrayRef{1}, true, at::kDouble);
  comm.all_reduce(mean);
  mean.div_(n);
  const at::Tensor centered = (views - mean).to(views.scalar_type());
  const at::Tensor variance = at::linalg_vector_norm(centered, 2, at::IntArrayRef{1}, true, at::kDouble).square_();
  comm.all_reduce(variance);
  const at::Tensor inverse = variance.div_(n).add_(kBatchNormEpsilon).rsqrt_().to(views.scalar_type());
  return {centered * inverse, inverse};
}

LossResult barlow_cross(const BarlowOptions& options, const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
  const int64_t views = batch.views, n = batch.local_positions(), dims = z.size(1), pairs = views * (views - 1) / 2;
  const auto rows = static_cast<double>(batch.samples.size());
  PAL_CHECK(views >= 2, "loss.barlow=cross on a number of views", views, "give at least two, or use loss.barlow=graph");
  const Standardized x = standardize(z.view({views, n, dims}), batch, comm);
  // All views as columns of one matrix: one product with the graph of the positions.
  const at::Tensor wide =
      x.rows.permute({1, 0, 2}).reshape({n, views * dims}).contiguous();  // D = 1: reshape may be a view
  const at::Tensor product = normalized_product(wide, positions_of(batch), comm, graph::SelfLoops::on)
                                 .view({n, views, dims})
                                 .permute({1, 0, 2});
  std::vector<at::Tensor> parts = {product.sum(at::IntArrayRef{1}, false, at::kDouble)};  // (V, D)
  for (int64_t a = 0; a < views; ++a) {
    for (int64_t b = a + 1; b < views; ++b)
      parts.push_back(x.rows[a].to(at::kDouble).t().mm(product[b].to(at::kDouble)));
  }
  const at::Tensor sums = at::cat(parts);  // (V + pairs · D, D)
  comm.all_reduce(sums);
  sums.div_(rows);

  // Of C_ab: dX_a = ĜX_b Mᵀ / (N pairs), dX_b = ĜX_a M / (N pairs); their column means and their parts along X too.
  const at::Tensor d = at::zeros_like(x.rows), mean = ops::zero_doubles({views, 1, dims}, z),
                   along = at::zeros_like(mean);
  at::Tensor terms = ops::zero_doubles({2}, z);
  int64_t at = views;
  for (int64_t a = 0; a < views; ++a) {
    for (int64_t b = a + 1; b < views; ++b, at += dims) {
      const at::Tensor c = sums.narrow(0, at, dims);
      const Correlation at_c = correlation_terms(c, options);
      terms = terms + at_c.terms;
      const at::Tensor m = at_c.gradient / (rows * static_cast<double>(pairs)), typed = m.to(z.scalar_type());
      d[a].addmm_(product[b], typed.t());
      d[b].addmm_(product[a], typed);
      mean[a].add_(sums.narrow(0, b, 1).mm(m.t()));
      mean[b].add_(sums.narrow(0, a, 1).mm(m));
      along[a][0].add_((c * m).sum(1));
      along[b][0].add_((c * m).sum(0));
    }
  }
  const at::Tensor dz =
      (d - mean.to(z.scalar_type()) - x.rows * along.to(z.scalar_type())).mul_(x.inverse).view({views * n, dims});
  return with_terms(terms, options.scale / static_cast<double>(pairs), dz);
}

}  // namespace

Criterion make_barlow(const BarlowOptions& options) {
  return [options](const at::Tensor& embeddings, const Batch& batch, comm::Comm& comm) {
    const at::Tensor z = checked_rows(embeddings, batch, comm);
    return options.form == BarlowForm::graph ? barlow_graph(options, z, batch, comm)
                                             : barlow_cross(options, z, batch, comm);
  };
}

Criterion barlow_criterion(const LossSpec& spec) {
  return make_barlow({spec.barlow, spec.lambda, spec.scale, spec.self_loops_or(graph::SelfLoops::off)});
}

}  // namespace pal::loss
