#include "core/ops/graph.h"

#include "core/ops/dispatch.h"

namespace pal::ops {

using kernels::Into;
namespace cpu = kernels::cpu;
namespace cuda = kernels::cuda;

void graph_rows(const at::Tensor& out, const at::Tensor& value, const at::Tensor& z, const at::Tensor& partners,
                const Csr& s, const kernels::GraphRowsOptions& options, int threads) {
  const int64_t rows = z.size(0), dims = z.size(1), nnz = s.columns.numel();
  dispatch(
      "graph_rows", z, {out, value, partners, s.offsets, s.columns, s.weights}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const at::Tensor weights = s.weights.to(z.scalar_type());
        const ScratchMemory scratch(cpu::graph_rows_scratch_bytes<T>(rows, nnz, dims));
        cpu::graph_rows<T>(maybe_matrix<T>(out), number(value), matrix_view<const T>(z), matrix_view<const T>(partners),
                           {span<const int64_t>(s.offsets), span<const int32_t>(s.columns), span<const T>(weights)},
                           options, scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const at::Tensor weights = s.weights.to(at::kFloat);
        const ScratchMemory scratch(cuda::graph_rows_scratch_bytes<T>(rows, nnz, dims), z);
        cuda::graph_rows<T>(
            maybe_matrix<T>(out), number(value), matrix_view<const T>(z), matrix_view<const T>(partners),
            {span<const int64_t>(s.offsets), span<const int32_t>(s.columns), span<const float>(weights)}, options,
            scratch, stream);
      });
}

void block_sums(const at::Tensor& sums, const at::Tensor& z, const at::Tensor& row_block, int threads) {
  const int64_t rows = z.size(0), dims = z.size(1), blocks = sums.size(0);
  dispatch(
      "block_sums", z, {sums, row_block}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::block_sums_scratch_bytes(rows, blocks, dims));
        cpu::block_sums<T>(matrix_view<double>(sums), matrix_view<const T>(z), span<const int32_t>(row_block), scratch,
                           how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::block_sums_scratch_bytes(rows, blocks, dims), z);
        cuda::block_sums<T>(matrix_view<double>(sums), matrix_view<const T>(z), span<const int32_t>(row_block), scratch,
                            stream);
      });
}

void block_table(const at::Tensor& out, const at::Tensor& table, const at::Tensor& sums, int threads) {
  const auto to = maybe_matrix<double>(out);
  const auto b = maybe_matrix<const double>(table), from = maybe_matrix<const double>(sums);
  dispatch_doubles(
      "block_table", sums, {out, table}, threads, [&](kernels::Cpu how) { cpu::block_table(to, b, from, how); },
      [&](auto stream) { cuda::block_table(to, b, from, stream); });
}

void block_between(const at::Tensor& between, const at::Tensor& pair_weight, const at::Tensor& value,
                   const at::Tensor& table, const at::Tensor& means, const at::Tensor& members, int threads) {
  const int64_t blocks = means.size(0);
  const auto to = maybe_matrix<double>(between);
  const auto weight = maybe_span<double>(pair_weight);
  const auto b = maybe_matrix<const double>(table), m = maybe_matrix<const double>(means);
  const auto n = maybe_span<const double>(members);
  dispatch_doubles(
      "block_between", means, {between, pair_weight, value, table, members}, threads,
      [&](kernels::Cpu how) {
        const ScratchMemory scratch(cpu::block_between_scratch_bytes(blocks));
        cpu::block_between(to, weight, number(value), b, m, n, scratch, how);
      },
      [&](auto stream) {
        const ScratchMemory scratch(cuda::block_between_scratch_bytes(blocks, means.size(1)), means);
        cuda::block_between(to, weight, number(value), b, m, n, scratch, stream);
      });
}

void block_rows(const at::Tensor& out, const at::Tensor& per_block, const at::Tensor& row_block, double scale,
                Into into, int threads) {
  dispatch(
      "block_rows", out, {per_block, row_block}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        cpu::block_rows<T>(matrix_view<T>(out), matrix_view<const double>(per_block), span<const int32_t>(row_block),
                           scale, into, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        cuda::block_rows<T>(matrix_view<T>(out), matrix_view<const double>(per_block), span<const int32_t>(row_block),
                            scale, into, stream);
      });
}

void block_differences(const at::Tensor& out, const at::Tensor& value, const at::Tensor& z, const at::Tensor& means,
                       const at::Tensor& pair_weight, const at::Tensor& row_block, double scale, Into into,
                       int threads) {
  const int64_t rows = z.size(0), dims = z.size(1);
  dispatch(
      "block_differences", z, {out, value, means, pair_weight, row_block}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::block_differences_scratch_bytes(rows));
        cpu::block_differences<T>(maybe_matrix<T>(out), number(value), matrix_view<const T>(z),
                                  matrix_view<const double>(means), span<const double>(pair_weight),
                                  span<const int32_t>(row_block), scale, into, scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::block_differences_scratch_bytes(rows, dims), z);
        cuda::block_differences<T>(maybe_matrix<T>(out), number(value), matrix_view<const T>(z),
                                   matrix_view<const double>(means), span<const double>(pair_weight),
                                   span<const int32_t>(row_block), scale, into, scratch, stream);
      });
}

}  // namespace pal::ops
