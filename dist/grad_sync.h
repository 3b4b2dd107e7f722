// grad_sync: the gradients of all ranks, summed in flat buckets.
//
// Every parameter's .grad is a view into a bucket (in the parameter's own memory layout), in reverse order of the
// parameters, as backward produces them. Sums, never means: each rank's dz already belongs to the global loss.
#pragma once

#include <cstdint>
#include <vector>

#include "core/comm.h"
#include "core/optim/optimizer.h"

namespace pal {

class GradSync {
 public:
  // Makes the buckets and points each parameter's gradient into them. comm must outlive this.
  GradSync(const NamedTensors& parameters, Comm& comm, int64_t bucket_bytes = 25 << 20);

  void zero();
  void sum();             // Collective. After backward.
  bool finite() const;    // of the summed gradients; the same answer on every rank
  int64_t bytes() const;  // per rank and step

 private:
  Comm& comm_;
  std::vector<at::Tensor> buckets_;
};

}  // namespace pal
