// support_queue: NNCLR's support set: the newest embeddings of the run on the unit sphere, first in first out.
//
// It always holds `size` rows: drawn from the sphere by the seed at first, then the first view of each step's batch in its
// order. Every rank holds the same rows. What a step brings is staged and enters only when the step has passed its guard.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/loss/criterion.h"
#include "core/ops/named_tensors.h"

namespace pal::loss {

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
