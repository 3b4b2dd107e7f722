#include "core/eval/effective_rank.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>

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

}  // namespace pal::eval
