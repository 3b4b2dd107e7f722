// graph: kernels/graph_rows.h and kernels/block_terms.h on tensors, by device; these headers have the formulas.
//
// Shapes: sums, means and values are fp64, index tensors int32, offsets int64; all on z's device (core/ops/tensors.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/block_terms.h"
#include "kernels/graph_rows.h"

namespace pal::ops {

// Rows of a sparse graph; weights fp64, rounded to the kernel's type.
struct Csr {
  at::Tensor offsets, columns, weights;
};

// out may be undefined (value only), value (1) may be (rows only).
void graph_rows(const at::Tensor& out, const at::Tensor& value, const at::Tensor& z, const at::Tensor& partners,
                const Csr& s, const kernels::GraphRowsOptions& options, int threads);

void block_sums(const at::Tensor& sums, const at::Tensor& z, const at::Tensor& row_block, int threads);
void block_table(const at::Tensor& out, const at::Tensor& table, const at::Tensor& sums, int threads);
// value (1) may be undefined.
void block_between(const at::Tensor& between, const at::Tensor& pair_weight, const at::Tensor& value,
                   const at::Tensor& table, const at::Tensor& means, const at::Tensor& members, int threads);
void block_rows(const at::Tensor& out, const at::Tensor& per_block, const at::Tensor& row_block, double scale,
                kernels::Into into, int threads);
void block_differences(const at::Tensor& out, const at::Tensor& value, const at::Tensor& z, const at::Tensor& means,
                       const at::Tensor& pair_weight, const at::Tensor& row_block, double scale, kernels::Into into,
                       int threads);

}  // namespace pal::ops
