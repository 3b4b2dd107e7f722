// checkpoint_folder: the folder checkpoints/ of a run: step-N/ with its files and manifest.json, and the link `last`.
//
// A checkpoint is valid once its manifest exists and every SHA-256 in it matches. It is written to .new-step-N, fsynced
// and renamed; after a kill at any moment the newest complete one still loads. Works on bytes, without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pal::record {

inline constexpr uint64_t kMaxText = 64 << 20;  // bytes of state.json and of manifest.json

using FileSums = std::map<std::string, std::string>;  // file name → SHA-256

// Steps of the checkpoints of a run, newest first; each may still be damaged.
std::vector<int64_t> checkpoint_steps(const std::string& run_dir);
std::string checkpoint_path(const std::string& run_dir, int64_t step);

// Removes what a crash has left half written or removed, and points `last` at the newest one. No process may write.
void sweep_checkpoints(const std::string& run_dir);
// Makes .new-step-N, if it does not exist, and returns its path; every writing rank may call it.
std::string begin_checkpoint(const std::string& run_dir, int64_t step);
// Called by one rank after all files are written and synced: writes the manifest last, then renames. Then removes all
// but the newest `keep`, and those of later steps, which remain when a run went back to an earlier step.
void commit_checkpoint(const std::string& run_dir, int64_t step, const FileSums& files, int keep);
// Removes .new-step-N after a failure.
void abandon_checkpoint(const std::string& run_dir, int64_t step);

// A small file of a checkpoint: written, synced; its SHA-256.
std::string write_checkpoint_text(const std::string& path, const std::string& text);
// The files of a checkpoint, each compared with its SHA-256. Throws Error (data): the file and the reason.
std::vector<std::string> verify_checkpoint(const std::string& path);

// Decides which rank writes which tensors of a checkpoint into which file. Every rank computes the same result.
//
// Math: the bytes are cut into pieces near (all bytes) / W, but not below `smallest`: a small model stays one file. A
//   group that is one piece is NAME.safetensors, one of n pieces NAME-00001-of-0000n.safetensors. A tensor is never
//   cut.
struct TensorGroup {
  std::string name;             // model, optim, extra
  std::vector<uint64_t> bytes;  // of each tensor
};

struct SharedFile {
  std::string name;
  size_t group = 0;
  size_t begin = 0, end = 0;  // tensors of the group
  uint64_t bytes = 0;
  int rank = 0;  // the rank that writes it
};

inline constexpr uint64_t kSmallestShare = uint64_t{64} << 20;
// A group without tensors has no file. In the order of the groups.
std::vector<SharedFile> share_out(const std::vector<TensorGroup>& groups, int ranks,
                                  uint64_t smallest = kSmallestShare);

}  // namespace pal::record
