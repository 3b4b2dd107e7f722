// graph_terms: products of the batch's graph with the embeddings, on this rank's rows.
//
// Math:  G = Σ_l M_l B_l M_lᵀ + Σ_f w_f F_f F_fᵀ + S. Cost: a layer O(rows · D), plus (blocks)² · D for a table;
//        features O(rows · width · D); the rest S O(nnz · V² · D).
// Collective: blocks with rows on one rank need no communication. One all-reduce sums the blocks that span ranks in
//        fp64, for all layers (every block of a table spans ranks). FᵀZ is all-reduced. Rows of S on other ranks arrive
//        as a halo (core/loss/halo.h).
// Async: a share is this rank's part of a global sum, a fp64 tensor of one element on z's device. sum_shares adds the
//        shares of all ranks; no function before it waits for the GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/loss/criterion.h"
#include "kernels/graph_rows.h"

namespace pal::loss {

// Collective. Share of Σ_{i≠j} G_ij ‖z_i − z_j‖²; dz += scale · its gradient 4 Σ_j G_ij (z_i − z_j), from differences.
at::Tensor invariance_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                            double scale);

// Collective. The sparse rest of batch.graph alone, in a form of kernels/graph_rows.h: the share of its value;
// out += scale · its rows.
at::Tensor rest_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                      graph::SelfLoops self_loops, kernels::RowForm form, double scale);

// Collective. Share of Tr ZᵀGZ; out += scale · G Z.
at::Tensor product_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                         graph::SelfLoops self_loops, double scale);

// Collective. Sums each share over ranks in fp64 with one all-reduce, and waits for the device. On meta: zeros.
std::vector<double> sum_shares(std::initializer_list<at::Tensor> shares, comm::Comm& comm);

// Checks the arguments of a criterion; returns z with contiguous rows.
at::Tensor checked_rows(const at::Tensor& z, const Batch& batch, const comm::Comm& comm);

// layer_share: the blocks of a layer that this rank computes, derived from the batch plan on every rank.
// Blocks are renumbered: first those with rows on several ranks, in the same order on every rank so that their sums can
// be all-reduced, then those of this rank alone. A table relates any two blocks, so every rank holds all of its blocks.
struct LayerShare {
  double weight = 1.0;
  int64_t spanning = 0;
  std::vector<int32_t> row_block;  // (local rows) → number, −1 none
  std::vector<double> rows;        // (blocks of this rank) rows of the block in the global batch
  int64_t blocks() const { return static_cast<int64_t>(rows.size()); }
};

LayerShare layer_share(const graph::BlockLayer& layer, const Batch& batch, int rank);

}  // namespace pal::loss
