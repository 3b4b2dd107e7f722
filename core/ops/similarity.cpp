#include "core/ops/similarity.h"

#include "core/ops/dispatch.h"

namespace pal::ops {

namespace cpu = kernels::cpu;
namespace cuda = kernels::cuda;

void row_logsumexp(const at::Tensor& lse, const at::Tensor& rows, const at::Tensor& columns, const at::Tensor& self,
                   const kernels::RowLogSumExpOptions& options, int threads) {
  const int64_t n = rows.size(0), count = columns.size(0), dims = rows.size(1);
  dispatch(
      "row_logsumexp", rows, {lse, columns, self}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::row_logsumexp_scratch_bytes<T>(n, count, dims));
        cpu::row_logsumexp<T>(span<double>(lse), matrix_view<const T>(rows), matrix_view<const T>(columns),
                              maybe_span<const int64_t>(self), options, scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::row_logsumexp_scratch_bytes<T>(n, count, dims), rows);
        cuda::row_logsumexp<T>(span<double>(lse), matrix_view<const T>(rows), matrix_view<const T>(columns),
                               maybe_span<const int64_t>(self), options, scratch, stream);
      });
}

void row_logsumexp_gradient(const at::Tensor& out, const at::Tensor& rows, const at::Tensor& columns,
                            const at::Tensor& self, const LseTerms& row_terms, const LseTerms& column_terms,
                            const kernels::RowLogSumExpOptions& options, int threads) {
  const int64_t n = rows.size(0), count = columns.size(0), dims = rows.size(1);
  const auto terms = [](const LseTerms& t) {
    return kernels::LogSumExpTerms{maybe_span<const double>(t.lse), maybe_span<const double>(t.degrees)};
  };
  dispatch(
      "row_logsumexp_gradient", rows,
      {out, columns, self, row_terms.lse, row_terms.degrees, column_terms.lse, column_terms.degrees}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::row_logsumexp_gradient_scratch_bytes<T>(n, count, dims));
        cpu::row_logsumexp_gradient<T>(matrix_view<T>(out), matrix_view<const T>(rows), matrix_view<const T>(columns),
                                       maybe_span<const int64_t>(self), terms(row_terms), terms(column_terms), options,
                                       scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::row_logsumexp_gradient_scratch_bytes<T>(n, count, dims), rows);
        cuda::row_logsumexp_gradient<T>(matrix_view<T>(out), matrix_view<const T>(rows), matrix_view<const T>(columns),
                                        maybe_span<const int64_t>(self), terms(row_terms), terms(column_terms), options,
                                        scratch, stream);
      });
}

void nearest(const at::Tensor& ids, const at::Tensor& scores, const at::Tensor& queries, const Support& support,
             const at::Tensor& excluded, kernels::Metric metric, int threads) {
  const int64_t count = queries.size(0), rows = support.rows.size(0), dims = queries.size(1), k = ids.size(1);
  dispatch(
      "nearest", queries, {ids, scores, support.rows, support.ids, support.samples, excluded}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::nearest_scratch_bytes<T>(count, rows, dims, k));
        cpu::nearest<T>({matrix_view<int64_t>(ids), matrix_view<double>(scores)}, matrix_view<const T>(queries),
                        {matrix_view<const T>(support.rows), maybe_span<const int64_t>(support.ids),
                         maybe_span<const int64_t>(support.samples)},
                        maybe_matrix<const int64_t>(excluded), metric, scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::nearest_scratch_bytes<T>(count, rows, dims, k), queries);
        cuda::nearest<T>({matrix_view<int64_t>(ids), matrix_view<double>(scores)}, matrix_view<const T>(queries),
                         {matrix_view<const T>(support.rows), maybe_span<const int64_t>(support.ids),
                          maybe_span<const int64_t>(support.samples)},
                         maybe_matrix<const int64_t>(excluded), metric, scratch, stream);
      });
}

}  // namespace pal::ops
