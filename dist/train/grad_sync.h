// grad_sync: sums the gradients over all ranks in flat buckets, during the backward pass.
//
// A hook on each parameter copies its gradient into its bucket, in the parameter's own memory layout; p.grad() is then
// a view of the bucket. A full bucket is handed to the reducer thread, which sums the buckets over `comm` in a fixed
// order, the last parameter's bucket first, whatever the order in which hooks fire. A gradient that backward did not
// compute counts as 0. Gradients are summed, not averaged: each rank's dz is already that of the global loss.
//
// Thread: hooks run in the backward thread. The reducer thread is the only one that uses `comm`, and waits there for
//   the other ranks; sum() waits for the reducer thread. Nothing is reduced before release(), so that the gradients of
//   several backward passes add up first. In a world of one rank there is no reducer thread.
//   Where `comm` carries GPU tensors (dist/comm/device_comm.h) there is none either: the backward thread enqueues each
//   full bucket, in the same order, and sum() makes its stream wait for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/comm.h"
#include "core/ops/named_tensors.h"
#include "core/optim/flat.h"
#include "core/setup/train_spec.h"

namespace pal::dist {

// The type in which float32 gradients are sent; float64 is sent as float64. bfloat16 halves the bytes: each rank rounds
// its gradients, they are added in fp32 in the order of ranks, and the sum is rounded again; so the result depends on
// W.
using setup::GradDtype;

struct GradSyncOptions {
  int64_t bucket_bytes = 25 << 20;
  GradDtype dtype = GradDtype::full;
};

// Duration of the last step's sums, and how long sum() waited for them.
struct SyncTime {
  double seconds = 0, waited = 0;
  double hidden() const;  // fraction of `seconds` that overlapped with backward; NaN when nothing was sent
};

class GradSync {
 public:
  // Moves parameters and gradients into buckets. comm must outlive this.
  GradSync(const ops::NamedTensors& parameters, comm::Comm& comm, const GradSyncOptions& options = {});
  // Ends the reducer thread if it is idle. A thread that is inside a collective is detached: it waits for other ranks,
  // and the destructor must not.
  ~GradSync();
  GradSync(const GradSync&) = delete;
  GradSync& operator=(const GradSync&) = delete;

  void begin();           // a new step: clears the gradients
  void release();         // the next backward pass is the step's last: full buckets are summed from now on
  void sum();             // Collective. After backward: sums the remaining buckets and waits for all.
  bool finite() const;    // whether the sums are finite; the same on every rank
  int64_t bytes() const;  // of all buckets
  const SyncTime& time() const { return time_; }

 private:
  class Hook;
  struct Reducer;
  struct Filling {
    std::vector<char> arrived;  // by parameter, since release()
    size_t count = 0;
  };

  void arrived(size_t bucket, size_t k);
  void launch_full();

  std::vector<optim::FlatBucket> buckets_;
  std::vector<Filling> filling_;
  std::shared_ptr<Reducer> reducer_;
  bool released_ = false;
  size_t launched_ = 0;  // buckets handed to the reducer in this step
  SyncTime time_;
};

// Collective. Sums one bucket in place, on the calling thread; every rank ends with the same bits.
void sum_bucket(const at::Tensor& bucket, comm::Comm& comm, GradDtype dtype);

}  // namespace pal::dist
