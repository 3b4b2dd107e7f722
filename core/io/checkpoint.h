// checkpoint: a run's state on disk: step-N/{model,optim}.safetensors + state.json + manifest.json, manifest last.
//
// A checkpoint counts only once its manifest stands and every SHA-256 in it agrees. Written to a temporary folder,
// fsynced, renamed; the link `last` points at the newest. A damaged one is skipped for the one before, with a warning.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/optim/optimizer.h"

namespace pal {

struct CheckpointState {
  int64_t step = 0;             // steps done
  uint64_t seed = 0;
  std::string fingerprint;      // of what identical continuation needs equal: W, threads, ISA, dtype
  uint64_t graph_version = 0;
  int64_t ledger_position = 0;  // answers used so far
  std::string extra_json = "{}";
};

// Writes checkpoints/step-<step> under run_dir; then removes all but the newest `keep`, and those of later steps, which a
// run that went back has left behind.
void write_checkpoint(const std::string& run_dir, const CheckpointState& state, const NamedTensors& model,
                      const NamedTensors& optim, int keep);

struct LoadedCheckpoint {
  std::string path;
  CheckpointState state;
  std::map<std::string, at::Tensor> model, optim;
};
// The newest one that verifies, or nothing where there is none. `warn` gets a sentence for each one skipped. All damaged:
// throws Error (data), rather than begin again and write over them.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_dir,
                                                       const std::function<void(const std::string&)>& warn);
// Copies loaded tensors into `into` by name; missing, extra or misshapen names throw Error (data) listing the first few.
void restore(const NamedTensors& into, const std::map<std::string, at::Tensor>& from, const std::string& what);

}  // namespace pal
