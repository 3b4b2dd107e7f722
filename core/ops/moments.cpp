#include "core/ops/moments.h"

#include <ATen/ops/empty.h>

#include "core/ops/dispatch.h"

namespace pal::ops {

using kernels::Into;
using kernels::MomentsOptions;
namespace cpu = kernels::cpu;
namespace cuda = kernels::cuda;

void column_sums(const at::Tensor& sums, const at::Tensor& z, int threads) {
  dispatch(
      "column_sums", z, {sums}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::column_sums_scratch_bytes(z.size(0), z.size(1)));
        cpu::column_sums<T>(span<double>(sums), matrix_view<const T>(z), scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::column_sums_scratch_bytes(z.size(0), z.size(1)), z);
        cuda::column_sums<T>(span<double>(sums), matrix_view<const T>(z), scratch, stream);
      });
}

void centered_second_moment(const at::Tensor& packed, const at::Tensor& z, const at::Tensor& mean,
                            const MomentsOptions& options, int threads) {
  dispatch(
      "centered_second_moment", z, {packed, mean}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::centered_second_moment_scratch_bytes<T>(z.size(0), z.size(1), options));
        cpu::centered_second_moment<T>(span<double>(packed), matrix_view<const T>(z), span<const double>(mean), options,
                                       scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::centered_second_moment_scratch_bytes<T>(z.size(0), z.size(1), options), z);
        cuda::centered_second_moment<T>(span<double>(packed), matrix_view<const T>(z), span<const double>(mean),
                                        options, scratch, stream);
      });
}

at::Tensor covariance_terms(const at::Tensor& terms, const at::Tensor& z, const at::Tensor& packed, int64_t n,
                            const MomentsOptions& options, int threads) {
  const int64_t dims = z.size(1);
  const at::Tensor a = at::empty({dims, dims}, z.device().is_cpu() ? z.options() : z.options().dtype(at::kFloat));
  dispatch(
      "covariance_terms", z, {terms, packed}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        cpu::covariance_terms<T>(matrix_view<T>(a), number(terms), number(terms) + 1, span<const double>(packed), n,
                                 options, how);
      },
      [&](auto t, cudaStream_t stream) {
        static_cast<void>(t);  // the matrix is float for every type of z
        const ScratchMemory scratch(cuda::covariance_terms_scratch_bytes(dims), z);
        cuda::covariance_terms(matrix_view<float>(a), number(terms), number(terms) + 1, span<const double>(packed), n,
                               options, scratch, stream);
      });
  return a;
}

void centered_product(const at::Tensor& out, const at::Tensor& z, const at::Tensor& mean, const at::Tensor& a,
                      Into into, int threads) {
  dispatch(
      "centered_product", z, {out, mean, a}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::centered_product_scratch_bytes<T>(z.size(0), z.size(1)));
        cpu::centered_product<T>(matrix_view<T>(out), matrix_view<const T>(z), span<const double>(mean),
                                 matrix_view<const T>(a), into, scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        cuda::centered_product<T>(matrix_view<T>(out), matrix_view<const T>(z), span<const double>(mean),
                                  matrix_view<const float>(a), into, stream);
      });
}

void gram_terms(const at::Tensor& out, const at::Tensor& terms, const at::Tensor& z_all, const at::Tensor& mean,
                int64_t begin, const MomentsOptions& options, Into into, int threads) {
  const int64_t n = z_all.size(0), dims = z_all.size(1);
  dispatch(
      "gram_terms", z_all, {out, terms, mean}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::gram_terms_scratch_bytes<T>(n, dims, options));
        cpu::gram_terms<T>(matrix_view<T>(out), number(terms), number(terms) + 1, matrix_view<const T>(z_all),
                           span<const double>(mean), begin, options, into, scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::gram_terms_scratch_bytes<T>(n, dims, options), z_all);
        cuda::gram_terms<T>(matrix_view<T>(out), number(terms), number(terms) + 1, matrix_view<const T>(z_all),
                            span<const double>(mean), begin, options, into, scratch, stream);
      });
}

}  // namespace pal::ops
