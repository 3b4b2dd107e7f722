// block_terms on the CPU: column tiles own their part of the sums, rows own their part of the output.
#include "kernels/block_terms.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/base/scratch.h"
#include "kernels/base/threads.h"

namespace pal::kernels::cpu {
namespace {

constexpr int64_t kColumnTile = 128;
constexpr int64_t kRowTile = 16;

void check_table(const char* name, MatrixView<const double> table, Cpu cpu) {
  for (int64_t p = 0; p < table.rows; ++p) check_finite(name, Span<const double>(table.row(p), table.cols), cpu.isa);
}

}  // namespace

int64_t block_sums_scratch_bytes(int64_t, int64_t, int64_t) { return 0; }

template <class T>
void block_sums(MatrixView<double> sums, MatrixView<const T> z, Span<const int32_t> row_block, Scratch, Cpu cpu) {
  check_cpu("block_sums", cpu);
  check_matrix("block_sums: z", z, -1, z.cols);
  check_matrix("block_sums: sums", sums, -1, z.cols);
  check_span("block_sums: row_block", row_block, z.rows);
  check_indices("block_sums: row_block", row_block, -1, sums.rows, cpu.isa);

  // A tile of columns sees all rows in their order: no second copy of the sums, whatever the number of blocks.
  const auto& vec = vec_ops<T>(cpu.isa);
  const int64_t tile = z.cols < 2 * kColumnTile ? kColumnTile / 2 : kColumnTile;
  parallel_for(cpu, z.cols, tile, [&](int64_t begin, int64_t end) {
    for (int64_t b = 0; b < sums.rows; ++b) std::fill(sums.row(b) + begin, sums.row(b) + end, 0.0);
    for (int64_t i = 0; i < z.rows; ++i) {
      if (row_block[i] >= 0) vec.add_wide(sums.row(row_block[i]) + begin, z.row(i) + begin, end - begin);
    }
  });
}

void block_table(MatrixView<double> out, MatrixView<const double> table, MatrixView<const double> sums, Cpu cpu) {
  check_cpu("block_table", cpu);
  check_matrix("block_table: table", table, table.cols, table.cols);
  check_matrix("block_table: sums", sums, table.rows, sums.cols);
  check_matrix("block_table: out", out, table.rows, sums.cols);
  PAL_CHECK(out.data != sums.data || out.rows * out.cols == 0, "block_table: out", "the same memory as sums",
            "give another matrix");
  check_table("block_table: row of table", table, cpu);

  const auto& vec = vec_ops<double>(cpu.isa);
  parallel_for(cpu, out.cols, kColumnTile, [&](int64_t begin, int64_t end) {
    for (int64_t p = 0; p < out.rows; ++p) {
      std::fill(out.row(p) + begin, out.row(p) + end, 0.0);
      for (int64_t q = 0; q < table.cols; ++q) {
        if (table.row(p)[q] != 0) vec.axpy(out.row(p) + begin, table.row(p)[q], sums.row(q) + begin, end - begin);
      }
    }
  });
}

int64_t block_between_scratch_bytes(int64_t blocks) {
  ScratchPieces pieces(nullptr);
  pieces.take<double>(blocks);
  return pieces.bytes();
}

void block_between(MatrixView<double> between, Span<double> pair_weight, double* value, MatrixView<const double> table,
                   MatrixView<const double> means, Span<const double> members, Scratch scratch, Cpu cpu) {
  const int64_t blocks = means.rows;
  check_cpu("block_between", cpu);
  check_matrix("block_between: means", means, -1, means.cols);
  check_matrix("block_between: table", table, blocks, blocks);
  check_matrix("block_between: between", between, blocks, means.cols);
  check_span("block_between: pair_weight", pair_weight, blocks);
  check_span("block_between: members", members, blocks);
  check_finite("block_between: members", members, cpu.isa);
  check_table("block_between: row of table", table, cpu);
  check_scratch("block_between", scratch, block_between_scratch_bytes(blocks));
  PAL_CHECK(between.data != means.data || blocks * means.cols == 0, "block_between: between",
            "the same memory as means", "give another matrix");

  double* values = ScratchPieces(scratch.data).take<double>(blocks);
  const auto& vec = vec_ops<double>(cpu.isa);
  parallel_for(cpu, blocks, 1, [&](int64_t c, int64_t) {
    std::fill_n(between.row(c), between.cols, 0.0);
    pair_weight[c] = values[c] = 0;
    for (int64_t d = 0; d < blocks; ++d) {
      const double weight = table.row(c)[d] * members[d];
      pair_weight[c] += weight;
      if (weight == 0 || members[c] == 0 || c == d) continue;  // a block without members has no mean
      // y += s (x − m)
      values[c] +=
          members[c] * weight * vec.difference_add(between.row(c), weight, means.row(c), means.row(d), means.cols);
    }
  });
  if (!value) return;
  *value = 0;
  for (int64_t c = 0; c < blocks; ++c) *value += values[c];
}

template <class T>
void block_rows(MatrixView<T> out, MatrixView<const double> per_block, Span<const int32_t> row_block, double scale,
                Into into, Cpu cpu) {
  check_cpu("block_rows", cpu);
  check_matrix("block_rows: out", out, -1, out.cols);
  check_matrix("block_rows: per_block", per_block, -1, out.cols);
  check_span("block_rows: row_block", row_block, out.rows);
  check_indices("block_rows: row_block", row_block, -1, per_block.rows, cpu.isa);

  const auto& vec = vec_ops<T>(cpu.isa);
  const auto write = into == Into::add ? vec.scale_narrow_add : vec.scale_narrow;
  parallel_for(cpu, out.rows, kRowTile, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (row_block[i] >= 0) {
        write(out.row(i), scale, per_block.row(row_block[i]), out.cols);
      } else if (into == Into::overwrite) {
        std::fill_n(out.row(i), out.cols, T{0});
      }
    }
  });
}

int64_t block_differences_scratch_bytes(int64_t rows) {
  ScratchPieces pieces(nullptr);
  pieces.take<double>(rows);
  return pieces.bytes();
}

template <class T>
void block_differences(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const double> means,
                       Span<const double> pair_weight, Span<const int32_t> row_block, double scale, Into into,
                       Scratch scratch, Cpu cpu) {
  check_cpu("block_differences", cpu);
  check_matrix("block_differences: z", z, -1, z.cols);
  check_matrix("block_differences: means", means, -1, z.cols);
  if (out.data) check_matrix("block_differences: out", out, z.rows, z.cols);
  check_span("block_differences: pair_weight", pair_weight, means.rows);
  check_span("block_differences: row_block", row_block, z.rows);
  check_finite("block_differences: pair_weight", pair_weight, cpu.isa);
  check_indices("block_differences: row_block", row_block, -1, means.rows, cpu.isa);
  check_scratch("block_differences", scratch, block_differences_scratch_bytes(z.rows));

  double* values = ScratchPieces(scratch.data).take<double>(z.rows);
  const auto& vec = vec_ops<T>(cpu.isa);
  const auto write = into == Into::add ? vec.difference_add : vec.difference;
  parallel_for(cpu, z.rows, kRowTile, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = out.data ? out.row(i) : nullptr;
      values[i] = 0;
      if (row_block[i] >= 0) {
        const double weight = pair_weight[row_block[i]];
        values[i] = 2 * weight * write(to, scale * weight, z.row(i), means.row(row_block[i]), z.cols);
      } else if (to && into == Into::overwrite) {
        std::fill_n(to, z.cols, T{0});
      }
    }
  });
  if (!value) return;
  *value = 0;
  for (int64_t i = 0; i < z.rows; ++i) *value += values[i];
}

#define PAL_INSTANTIATE(T)                                                                                      \
  template void block_sums<T>(MatrixView<double>, MatrixView<const T>, Span<const int32_t>, Scratch, Cpu);      \
  template void block_rows<T>(MatrixView<T>, MatrixView<const double>, Span<const int32_t>, double, Into, Cpu); \
  template void block_differences<T>(MatrixView<T>, double*, MatrixView<const T>, MatrixView<const double>,     \
                                     Span<const double>, Span<const int32_t>, double, Into, Scratch, Cpu);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cpu
