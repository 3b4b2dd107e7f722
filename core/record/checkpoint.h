// checkpoint: a run's state on disk: model, optim and extra tensors in safetensors files, and state.json.
//
// checkpoint_folder.h describes how the folder is written and when a checkpoint is valid. Large groups are divided into
// several files (share_out). A damaged checkpoint is skipped with a warning, and the one before it is used.
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
  std::string
      fingerprint;  // of everything that must be equal for identical results after a resume: W, threads, ISA, dtype
  uint64_t graph_version = 0;
  int64_t ledger_position = 0;  // answers used so far
  std::string extra_json = "{}";
};

inline constexpr const char* kStateFile = "state.json";
std::string state_text(const CheckpointState& state);
CheckpointState parse_state(const std::string& text, const std::string& file);  // Error (data) naming the file
// One file of a checkpoint, synced; its SHA-256.
std::string write_checkpoint_file(const std::string& path, int64_t step, const ops::NamedTensors& tensors);

struct LoadedCheckpoint {
  std::string path;
  CheckpointState state;
  std::map<std::string, at::Tensor> model, optim;
  std::map<std::string, at::Tensor> extra;  // other state between steps, such as a support queue
};
// The checkpoint in the folder `path`, verified. Throws Error (data): the file and the reason.
LoadedCheckpoint load_checkpoint(const std::string& path);
// The newest valid one, or nothing if there is none. `warn` gets a sentence for each skipped one. If all are damaged,
// it throws Error (data), because a new start would overwrite them.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_dir,
                                                       const std::function<void(const std::string&)>& warn);
// Copies loaded tensors into `into` by name; missing, extra or misshapen names throw Error (data) listing the first
// few.
void restore(const ops::NamedTensors& into, const std::map<std::string, at::Tensor>& from, const std::string& what);

}  // namespace pal::record
