// margin: what rows known to differ owe each other in VICReg: |w| relu(m − ‖z_i − z_j‖)² for every negative weight w.
//
// A margin does not factor through blocks: pairs are listed (core/graph/signed_parts.h draws some where there are many).
#pragma once

#include <ATen/core/Tensor.h>

#include "core/loss/criterion.h"

namespace pal::loss {

// Collective. negatives: symmetric, on positions, weights below 0, lifted to rows as the graph is; a row with itself has no
// term. The share of Σ_{i≠j} |w_ij| relu(m − ‖z_i − z_j‖)²; dz += scale · its gradient
// −4 Σ_j |w_ij| relu(m − d_ij) / d_ij (z_i − z_j), 0 where d_ij = 0.
at::Tensor margin_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch,
                        const graph::SparseRest& negatives, comm::Comm& comm, double margin, double scale);

}  // namespace pal::loss
