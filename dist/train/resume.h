// resume: the run folder of a job, and the checkpoint from which training continues: the newest good one of the run
// folder, or one of another run (pal train --resume DIR). Rank 0 reads it and broadcasts the state.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/comm.h"
#include "core/record/checkpoint.h"
#include "core/record/run_lock.h"
#include "core/setup/run_spec.h"
#include "dist/train/checkpointer.h"

namespace pal::dist {

enum class Resume { automatic, never };

// The folder of a run; rank 0 holds it, and its lock, as long as the job writes there.
class RunFolder {
 public:
  // Creates the folder, takes its lock and compares with its config.yaml; the length of the run may differ.
  // A folder without a checkpoint, a logged step and a ledger holds no run: a start failed there. Throws Error (usage)
  // with one sentence: not writable, of another config (with the keys that differ), in use, or with checkpoints and
  // Resume::never; Error (data) for a finished run without checkpoints.
  RunFolder(const std::string& path, const config::Config& config, Resume resume);

  // Writes config.yaml: the folder holds this run from then on.
  void keep_config() const;
  void check() const { lock_->check(); }
  // "train.steps=60" of the run in the folder, when the config has another length; else "".
  const std::string& other_length() const { return other_length_; }

 private:
  const std::string path_, config_;
  std::string other_length_;
  std::optional<record::RunLock> lock_;
};

// Another run's folder, or one of its checkpoints, from which a new run folder starts.
struct Origin {
  std::string run_dir;     // of the other run; "" for a checkpoint outside of a run folder
  std::string checkpoint;  // "": the newest good one of that run
};

// `folder` is a run folder or a folder step-N. Throws Error (usage) when it is neither.
Origin find_origin(const std::string& folder);

// Verified. Calls `warn` with a sentence for each damaged checkpoint that is skipped. None left: throws Error (data).
record::LoadedCheckpoint load_origin(const Origin& origin, const std::function<void(const std::string&)>& warn);

// Copies the other run's ledger into `run_dir`, unless it has one already, so that the new run has its answers. Synced.
// Throws Error (usage) while a job writes to that run, or when `answers` of them were used and there is no ledger.
void adopt_ledger(const Origin& origin, const std::string& run_dir, int64_t answers);

// The run that continues.
struct ResumeContext {
  const setup::RunSpec& spec;
  std::string run_dir;
  std::optional<Origin> origin;  // for a run folder without a checkpoint
  int64_t last_step = 0;
  std::string fingerprint;  // of ranks, threads and instructions
};

enum class ResumedFrom { nothing, own, other };  // the run's own checkpoint, or another run's

struct Resumed {
  ResumedFrom from = ResumedFrom::nothing;
  int64_t step = 0;                   // steps done
  std::vector<std::string> warnings;  // rank 0
};

// Collective. Rank 0 chooses the checkpoint and reads it into `state`, the live tensors; the other ranks receive them
// by broadcast.
Resumed resume(const ResumeContext& of, const Checkpointer::Groups& state, comm::Comm& comm);

}  // namespace pal::dist
