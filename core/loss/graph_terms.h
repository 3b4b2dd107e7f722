// graph_terms: products of the batch's graph with the embeddings, on this rank's rows.
//
//   G = Σ_l M_l B_l M_lᵀ + Σ_f w_f F_f F_fᵀ + S: a layer costs O(rows · D) and (blocks of a table)² · D, features
//   O(rows · width · D), the rest O(nnz · V² · D). Blocks that lie on one rank need no communication; the fp64 sums of blocks
//   that span ranks (all blocks of a table) are all-reduced, all layers at once, and so is FᵀZ; rows of the rest that lie
//   elsewhere come as a halo (core/loss/halo.h).
// A share is what this rank adds to a global number, a fp64 tensor of one element beside z: the caller sums the shares of
// all ranks (sum_shares), and nothing waits for a GPU before that.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/loss/criterion.h"
#include "kernels/graph_rows.h"

namespace pal::loss {

// Collective. Share of Σ_{i≠j} G_ij ‖z_i − z_j‖²; dz += scale · its gradient 4 Σ_j G_ij (z_i − z_j), taken by differences.
at::Tensor invariance_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                            double scale);

// Collective. A sparse graph alone, batch.graph.rest, in one of the forms of kernels/graph_rows.h: the share of its value;
// out += scale · its rows.
at::Tensor rest_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                      graph::SelfLoops self_loops, kernels::RowForm form, double scale);

// Collective. Share of Tr ZᵀGZ; out += scale · G Z.
at::Tensor product_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                         graph::SelfLoops self_loops, double scale);

// Collective. The sums over ranks of some shares, in fp64: one all-reduce. On meta, where there are no numbers: zeros.
std::vector<double> sum_shares(std::initializer_list<at::Tensor> shares, comm::Comm& comm);

// What every criterion asks of its arguments; returns z with contiguous rows.
at::Tensor checked_rows(const at::Tensor& z, const Batch& batch, const comm::Comm& comm);

// layer_share: what one rank holds of a layer of blocks. Every rank derives it from the plan of the batch.
// The blocks this rank deals with, numbered anew: first those that have rows on several ranks (the same ones in the same
// order on every rank, so that their sums can be all-reduced), then those that lie on this rank alone. A table relates any
// two blocks: every rank deals with all of them, by their own numbers.
struct LayerShare {
  double weight = 1.0;
  int64_t spanning = 0;
  std::vector<int32_t> row_block;  // (local rows) → number, −1 none
  std::vector<double> rows;        // (blocks dealt with) rows of the block in the global batch
  int64_t blocks() const { return static_cast<int64_t>(rows.size()); }
};

LayerShare layer_share(const graph::BlockLayer& layer, const Batch& batch, int rank);

}  // namespace pal::loss
