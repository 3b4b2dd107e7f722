// graph_terms: products of the batch's graph with the embeddings, on this rank's rows.
//
//   G = Σ_l M_l B_l M_lᵀ + S: each layer costs O(rows · D), the rest O(nnz · V² · D). Blocks that lie on one rank need no
//   communication; the fp64 sums of blocks that span ranks are all-reduced, all layers at once; rows of the rest that lie
//   elsewhere come as a halo (core/loss/halo.h).
// A share is what this rank adds to a global number: the caller sums the shares of all ranks (sum_shares).
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <vector>

#include "core/loss/criterion.h"

namespace pal {

// Collective. Share of Σ_{i≠j} G_ij ‖z_i − z_j‖²; dz += scale · its gradient 4 Σ_j G_ij (z_i − z_j), taken by differences.
double invariance_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, Comm& comm, double scale);

// Collective. Share of Tr ZᵀGZ; out += scale · G Z.
double product_share(const at::Tensor& out, const at::Tensor& z, const Batch& batch, Comm& comm, SelfLoops self_loops,
                     double scale);

// Collective. The sums over ranks of some shares, in fp64: one all-reduce.
std::vector<double> sum_shares(std::initializer_list<double> shares, Comm& comm);

// What every criterion asks of its arguments; returns z with contiguous rows.
at::Tensor checked_rows(const at::Tensor& z, const Batch& batch, const Comm& comm);

}  // namespace pal
