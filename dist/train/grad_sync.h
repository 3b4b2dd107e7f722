// grad_sync: the gradients of all ranks, summed in flat buckets while backward goes on.
//
// A hook on each parameter takes its gradient into its bucket, in the parameter's own memory layout; p.grad() is a view
// of the bucket from then on. A bucket that is full goes to one thread, which sums the buckets over `comm` in their fixed
// order, whatever the order in which hooks fire: the last parameter's bucket first. What no backward reached counts as 0.
// Sums, never means: each rank's dz already belongs to the global loss.
//
// On a GPU whose communicator carries its tensors (dist/comm/device_comm.h) there is no such thread: backward's own enqueues each
// full bucket behind its stream, in the order above, and sum() makes the stream wait for all of them.
//
// Thread: hooks run in the thread of backward; `comm` is used by the thread of this object alone (in a world of one there
//   is none). Nothing is reduced before release(), so that several backward passes may add up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/comm.h"
#include "core/ops/named_tensors.h"
#include "core/optim/flat.h"
#include "dist/train/bucket.h"

namespace pal::dist {

struct GradSyncOptions {
  int64_t bucket_bytes = 25 << 20;
  GradDtype wire = GradDtype::full;
};

// How long the last step's sums took, and how long backward's thread waited for them.
struct SyncTime {
  double seconds = 0, waited = 0;
  double hidden() const;  // share of `seconds` behind backward; NaN when there were none
};

class GradSync {
 public:
  // Moves parameters and gradients into buckets. comm must outlive this.
  GradSync(const ops::NamedTensors& parameters, comm::Comm& comm, const GradSyncOptions& options = {});
  // Waits for its thread, except while an error unwinds: that thread may wait for ranks that never come, and the process
  // is about to be aborted.
  ~GradSync();
  GradSync(const GradSync&) = delete;
  GradSync& operator=(const GradSync&) = delete;

  void begin();           // a new step: no gradients
  void release();         // the backward pass that follows is the step's last: buckets go as they fill
  void sum();             // Collective. After backward: the rest goes, and all are waited for.
  bool finite() const;    // of the summed gradients; the same answer on every rank
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

}  // namespace pal::dist
