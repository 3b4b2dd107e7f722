#include "core/loss/vic2.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "core/loss/graph_terms.h"
#include "core/loss/moment_terms.h"
#include "core/loss/tensor_view.h"

namespace pal {
namespace {

// The symmetric matrix scale · M of a packed triangle, and ‖M‖²_F.
template <class T>
double unpack(kernels::MatrixView<T> out, kernels::Span<const double> packed, double scale) {
  double square = 0;
  int64_t at = 0;
  for (int64_t k = 0; k < out.rows; ++k) {
    for (int64_t l = k; l < out.cols; ++l, ++at) {
      square += (k == l ? 1 : 2) * packed[at] * packed[at];
      out.row(k)[l] = out.row(l)[k] = static_cast<T>(scale * packed[at]);
    }
  }
  return square;
}

LossResult vic2(const Vic2Options& options, const at::Tensor& embeddings, const Batch& batch, Comm& comm) {
  const at::Tensor z = checked_rows(embeddings, batch, comm);
  const int64_t dims = z.size(1);
  const auto rows = static_cast<double>(batch.global_rows());
  const double scale = options.reduction == Reduction::mean && rows > 0 ? 1 / (rows * rows) : 1;
  LossResult result;
  result.dz = at::empty_like(z);

  const at::Tensor zero = at::zeros({dims}, at::kDouble);   // the second moment is taken about 0
  const at::Tensor packed = second_moment(z, zero, comm, {}, batch.threads);
  const at::Tensor m = at::empty({dims, dims}, z.options());
  double gram = 0;
  by_type(z, [&](auto t) {
    using T = decltype(t);
    gram = unpack(matrix_view<T>(m), span<const double>(packed), 4 * scale);
    const ScratchMemory scratch(kernels::cpu::centred_product_scratch_bytes<T>(z.size(0), dims));
    kernels::cpu::centred_product<T>(matrix_view<T>(result.dz), matrix_view<const T>(z), span<const double>(zero),
                                     matrix_view<const T>(m), kernels::Into::overwrite, scratch, {batch.threads});
  });
  const double share = product_share(result.dz, z, batch, comm, options.self_loops, -4 * scale);
  const double alignment = -2 * sum_shares({share}, comm)[0];
  const double graph = squared_norm(batch.graph, options.self_loops);

  result.terms = {{"gram", scale * gram}, {"alignment", scale * alignment}, {"graph", scale * graph}};
  result.value = scale * (gram + alignment + graph);
  return result;
}

}  // namespace

Criterion make_vic2(const Vic2Options& options) {
  return [options](const at::Tensor& z, const Batch& batch, Comm& comm) { return vic2(options, z, batch, comm); };
}

}  // namespace pal
