// checkpointer: checkpoints of a run on all ranks, written in the background. A step waits only for the copy.
//
// Thread: save(), in the computing thread, copies this rank's share of the tensors into a buffer that is allocated
//   once, and hands it to this rank's writer thread. The writer thread hashes, writes and syncs the files under
//   .new-step-N; it does not communicate. Between steps the computing threads exchange whether their files are written
//   (report() and settle(), without waiting for a disk). Once all are, rank 0 gets the hashes of all files, and its
//   writer thread writes the manifest last and renames the folder.
//   Two calls wait for the writer thread: drain(), and a save() while the checkpoint before is still being written.
// Communicator: `comm`, used by the computing thread only.
// Errors: when a write fails on any rank, that checkpoint is abandoned with a warning, the one before remains the
//   newest, and training continues.
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
  std::function<void(const std::string&)> warn;      // called with a sentence on the rank of the error
  std::function<void(int64_t step)> before_write;    // called by the writer thread; may throw: injected faults
  uint64_t smallest_share = record::kSmallestShare;  // of a file, in bytes
};

// The state of one rank's write; the maximum over ranks is the state of the checkpoint.
struct CheckpointReport {
  int64_t unfinished = 0;  // 1 while this rank still writes
  int64_t failed = 0;      // 1 when this rank's write failed
};

class Checkpointer {
 public:
  using Groups = std::vector<std::pair<std::string, ops::NamedTensors>>;
  // Collective. `state` names the groups (model, optim, extra) and the live tensors, the same on every rank.
  Checkpointer(CheckpointerOptions options, comm::Comm& comm, Groups state);
  // Waits for this rank's writer thread and does not communicate; a checkpoint that was not settled is not committed.
  ~Checkpointer();

  // Collective. Copies and returns.
  void save(const record::CheckpointState& state);
  // True between save() and the settle() that ends it; the same on every rank.
  bool pending() const { return pending_; }
  CheckpointReport report() const;
  // Collective, with the reports of all ranks: when none is unfinished, commits or abandons the pending checkpoint.
  void settle(const CheckpointReport& all);
  // Collective. Waits until the last save() is committed or abandoned. Returns whether it is committed, also when it
  // was settled before.
  bool drain();

  double blocked_ms() const { return blocked_ms_; }  // of the last save() on this rank

 private:
  struct Writer;
  CheckpointReport exchange();
  comm::Comm& comm_;
  std::unique_ptr<Writer> writer_;
  bool pending_ = false;
  bool failed_ = false;  // the last save() was abandoned
  double blocked_ms_ = 0;
};

}  // namespace pal::dist
