// nnclr: NNCLR on a graph: contrasts the nearest neighbor of a row with the predictions of its partners in other views.
//
// Math:  n_i = the row of the support nearest to batch.anchors_i (cosine), or one of the k nearest drawn by
//        (seed, step, row); a constant. q̃ = z / ‖z‖, z the predictor's output. With k = 0, n_i = anchors_i (plain
//        SSL). The support is batch.support, or the first views of the other samples of the global batch (in-batch
//        form). Σ_{u≠v} Σ_{p,p'} G⁺_pp' (lse^{uv}_p − n^u_pᵀq̃^v_p' / τ) / mass,  lse^{uv}_p = log Σ_p'
//        exp(n^u_pᵀq̃^v_p' / τ) over views u, v and positions p, p' of the global batch; mass = V (V−1) Σ_{p,p'}
//        G⁺_pp'. loss.reduction=sum drops mass. Negative weights count in the denominator only. On the two-view graph
//        this is the mean of the paper's two terms.
// Terms: alignment and contrast.
// Collective: all-gathers neighbor ids (8 bytes per row), q̃ and V−1 numbers per row; the in-batch form also the
// support.
// Reference: Dwibedi et al., "With a little help from my friends: nearest-neighbor contrastive learning" (ICCV 2021).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/loss/contrast.h"
#include "core/loss/criterion.h"
#include "core/ops/named_tensors.h"

namespace pal::loss {

enum class NeighborSource { support, batch };

struct NnclrOptions : ContrastOptions {
  int64_t neighbors = 1;  // k
  NeighborSource of = NeighborSource::support;
};

// Throws Error (usage) for a batch with a single view, without the support that is needed, or with a single sample in
// the in-batch form.
Criterion make_nnclr(const NnclrOptions& options);

// support_queue: NNCLR's support set: a FIFO queue of the newest embeddings on the unit sphere.
//
// It always holds `size` rows: random unit rows at the start, then the first view of each step's global batch. Every
// rank holds the same rows. stage() keeps the rows of a step aside; commit() enters them once the step's gradients are
// finite.
class SupportQueue {
 public:
  SupportQueue(int64_t size, int64_t dims, at::ScalarType type, uint64_t seed);

  const at::Tensor& rows() const { return rows_; }  // (size, D)
  // Collective. z (local rows, D).
  void stage(const at::Tensor& z, const Batch& batch, comm::Comm& comm);
  void commit();
  void discard() { staged_.reset(); }
  // For the checkpoint; the tensors alias the queue.
  ops::NamedTensors state() const { return {{"support_queue.rows", rows_}, {"support_queue.next", next_}}; }

 private:
  at::Tensor rows_, staged_;
  at::Tensor next_;  // (1) int64 index of the oldest row, replaced next
};

}  // namespace pal::loss
