#include "dist/train/bucket.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <c10/util/BFloat16.h>

#include "core/data/loader/epoch_sampler.h"
#include "kernels/base/error.h"
#include "kernels/base/vec.h"

namespace pal::dist {
namespace {

using c10::BFloat16;

// A bfloat16 tensor travels as rows of two bytes: no communicator knows the type.
at::Tensor halves(int64_t n) { return at::empty({n, 2}, at::kByte); }
BFloat16* as_bfloat16(const at::Tensor& bytes) { return static_cast<BFloat16*>(bytes.data_ptr()); }

// Each rank adds its slice of all shares in fp32 and hands the rounded sum to all.
void sum_as_bfloat16(float* x, int64_t n, comm::Comm& comm) {
  const int ranks = comm.size();
  const std::vector<int64_t> begin = data::rank_slices(n, ranks);
  std::vector<int64_t> slices;
  for (int r = 0; r < ranks; ++r) slices.push_back(begin[r + 1] - begin[r]);
  const int64_t own = slices[comm.rank()];

  const at::Tensor rounded = halves(n);
  for (int64_t i = 0; i < n; ++i) as_bfloat16(rounded)[i] = x[i];
  const at::Tensor shares = comm.all_to_all_v(rounded, slices, std::vector<int64_t>(ranks, own));
  const at::Tensor sums = halves(own);
  for (int64_t i = 0; i < own; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += static_cast<float>(as_bfloat16(shares)[r * own + i]);
    as_bfloat16(sums)[i] = sum;
  }
  const at::Tensor all = comm.all_gather_v(sums, slices);
  for (int64_t i = 0; i < n; ++i) x[i] = as_bfloat16(all)[i];
}

}  // namespace

void sum_bucket(const at::Tensor& bucket, comm::Comm& comm, GradDtype wire) {
  if (comm.size() == 1) return;
  if (wire == GradDtype::bfloat16 && bucket.scalar_type() == at::kFloat) {
    const at::Tensor host = bucket.cpu();  // the bucket itself on the CPU
    sum_as_bfloat16(host.data_ptr<float>(), host.numel(), comm);
    if (!bucket.is_cpu()) bucket.copy_(host);
  } else {
    comm.all_reduce(bucket, comm::ReduceOp::sum);
  }
}

bool all_finite(const at::Tensor& bucket) {
  if (!bucket.is_cpu()) return at::isfinite(bucket).all().item<bool>();
  const kernels::Isa isa = kernels::best_isa();
  return bucket.scalar_type() == at::kFloat
             ? kernels::vec_ops<float>(isa).first_not_finite(bucket.const_data_ptr<float>(), bucket.numel()) < 0
             : kernels::vec_ops<double>(isa).first_not_finite(bucket.const_data_ptr<double>(), bucket.numel()) < 0;
}

}  // namespace pal::dist
