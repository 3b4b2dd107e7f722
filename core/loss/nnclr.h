// nnclr: NNCLR on a graph: a row's nearest neighbor in a support set stands for it, and is drawn to the predictions of its
// partners in the other views.
//
// Math:  n_i = the nearest row (cosine) of the support to batch.anchors_i, or one of the k nearest, drawn by (seed, step, row),
//        constant; q̃ = z / ‖z‖, z the predictor's output. With k = 0 a row stands for itself, n_i = anchors_i: plain SSL.
//        The support: batch.support, or the first views of the other samples of the global batch (the in-batch form).
//        Σ_{u≠v} Σ_{p,p'} G⁺_pp' (lse^{uv}_p − n^u_pᵀq̃^v_p' / τ) / mass,  lse^{uv}_p = log Σ_p' exp(n^u_pᵀq̃^v_p' / τ)
//        over views u, v and positions p, p' of the global batch; mass = V (V−1) Σ_{p,p'} G⁺_pp'. loss.reduction=sum drops it.
//        Negative weights stay in the denominator only. On the two-view graph: the mean of the paper's two terms.
// Terms: alignment and contrast.
// Ranks: every rank holds the support (gathered in the in-batch form): ids of neighbors (8 bytes a row), q̃ and V−1 numbers a row are gathered; nothing returns.
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

// A batch without a support set where one is needed, of a single sample in the in-batch form, or of a single view throws Error
// (usage).
Criterion make_nnclr(const NnclrOptions& options);

// support_queue: NNCLR's support set: the newest embeddings of the run on the unit sphere, first in first out.
//
// It always holds `size` rows: drawn from the sphere by the seed at first, then the first view of each step's batch in its
// order. Every rank holds the same rows. What a step brings is staged and enters only when the step has passed its guard.
class SupportQueue {
 public:
  SupportQueue(int64_t size, int64_t dims, at::ScalarType type, uint64_t seed);

  const at::Tensor& rows() const { return rows_; }  // (size, D)
  // Collective. z (local rows, D).
  void stage(const at::Tensor& z, const Batch& batch, comm::Comm& comm);
  void commit();
  void discard() { staged_.reset(); }
  // For the checkpoint; they alias the queue's own.
  ops::NamedTensors state() const { return {{"support_queue.rows", rows_}, {"support_queue.next", next_}}; }

 private:
  at::Tensor rows_, staged_;
  at::Tensor next_;  // (1) int64 where the next row goes: the oldest
};

}  // namespace pal::loss
