// checkpoint: a run's state on disk: model, optim and extra tensors in safetensors files, and state.json.
//
// How the folder is written and what makes it count: checkpoint_folder.h. Large groups lie in several files
// (checkpoint_shares.h). A damaged checkpoint is skipped for the one before, with a warning.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/named_tensors.h"

namespace pal::record {

struct CheckpointState {
  int64_t step = 0;  // steps done
  uint64_t seed = 0;
  std::string fingerprint;  // of what identical continuation needs equal: W, threads, ISA, dtype
  uint64_t graph_version = 0;
  int64_t ledger_position = 0;  // answers used so far
  std::string extra_json = "{}";
};

inline constexpr const char* kStateFile = "state.json";
std::string state_text(const CheckpointState& state);
// One file of a checkpoint, synced; its SHA-256.
std::string write_checkpoint_file(const std::string& path, int64_t step, const ops::NamedTensors& tensors);
// Writes a whole checkpoint before it returns, by one process. A run writes them in the background: dist/train/checkpointer.h.
void write_checkpoint(const std::string& run_dir, const CheckpointState& state, const ops::NamedTensors& model,
                      const ops::NamedTensors& optim, int keep);

struct LoadedCheckpoint {
  std::string path;
  CheckpointState state;
  std::map<std::string, at::Tensor> model, optim;
  std::map<std::string, at::Tensor> extra;  // what else a run keeps between steps, such as a support queue
};
// The checkpoint in the folder `path`, verified. Throws Error (data): the file and the reason.
LoadedCheckpoint load_checkpoint(const std::string& path);
// The newest one that verifies, or nothing where there is none. `warn` gets a sentence for each one skipped. All damaged:
// throws Error (data), rather than begin again and write over them.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_dir,
                                                       const std::function<void(const std::string&)>& warn);
// Copies loaded tensors into `into` by name; missing, extra or misshapen names throw Error (data) listing the first few.
void restore(const ops::NamedTensors& into, const std::map<std::string, at::Tensor>& from, const std::string& what);

}  // namespace pal::record
