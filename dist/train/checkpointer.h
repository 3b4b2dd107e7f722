// checkpointer: checkpoints of a run on all ranks, written in the background. A step waits for the copy alone.
//
// Who waits for whom: save() copies this rank's share of the tensors into a buffer allocated once and hands it to the
//   rank's writing thread, which hashes, writes and syncs its files under .new-step-N. Between steps the ranks tell each
//   other that they have finished (report() and settle(), without waiting); once all have, the sums of the files go to
//   rank 0, whose thread writes the manifest, last, and gives the folder its name. Only a save() that comes before the
//   last one was written, and drain(), wait.
// A write that fails on any rank: that checkpoint is given up with a warning, the one before stands, training goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/comm.h"
#include "core/ops/named_tensors.h"
#include "core/record/checkpoint.h"
#include "core/record/checkpoint_folder.h"

namespace pal::dist {

struct CheckpointerOptions {
  std::string run_dir;
  int keep = 3;
  int threads = 1;                                   // of the copy
  std::function<void(const std::string&)> warn;      // gets a sentence on the rank it concerns
  std::function<void(int64_t step)> before_write;    // may throw, on the writing thread: injected faults
  uint64_t smallest_share = record::kSmallestShare;  // of a file, in bytes
};

// What a rank tells the others, and what it learns of all of them: numbers that are max-reduced.
struct CheckpointReport {
  int64_t unfinished = 0;  // 1 while this rank still writes
  int64_t failed = 0;      // 1 when this rank's write failed
};

class Checkpointer {
 public:
  using Groups = std::vector<std::pair<std::string, ops::NamedTensors>>;
  // Collective. `state` names the groups (model, optim, extra) and the live tensors, the same on every rank.
  Checkpointer(CheckpointerOptions options, comm::Comm& comm, Groups state);
  ~Checkpointer();  // Waits for this rank's files; a checkpoint that was not settled never gets its name.

  // Collective. Copies and returns.
  void save(const record::CheckpointState& state);
  // True between save() and the settle() that ends it; the same on every rank.
  bool pending() const { return pending_; }
  CheckpointReport report() const;
  // Collective, with the reports of all ranks: when none is unfinished, completes or gives up the pending checkpoint.
  void settle(const CheckpointReport& all);
  // Collective. Waits until the last save() is on disk under its name, or failed: whether it stands.
  bool drain();

  double blocked_ms() const { return blocked_ms_; }  // of the last save() on this rank

 private:
  struct Writer;
  CheckpointReport exchange();
  comm::Comm& comm_;
  std::unique_ptr<Writer> writer_;
  bool pending_ = false;
  double blocked_ms_ = 0;
};

}  // namespace pal::dist
