// checkpoint_folder: the folder checkpoints/ of a run: step-N/ with its files and manifest.json, and the link `last`.
//
// A checkpoint counts only once its manifest stands and every SHA-256 in it agrees. It is written to .new-step-N, fsynced,
// and renamed; killed at any moment, the newest complete one still loads. Knows bytes, not tensors (no torch).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pal::record {

using FileSums = std::map<std::string, std::string>;  // file name → SHA-256

// Steps of the checkpoints of a run, newest first; each may still be damaged.
std::vector<int64_t> checkpoint_steps(const std::string& run_dir);
std::string checkpoint_path(const std::string& run_dir, int64_t step);

// Removes what a crash while writing or removing has left. Nobody may be writing there.
void sweep_checkpoints(const std::string& run_dir);
// Makes .new-step-N, where it does not stand yet, and returns its path; every writer of the checkpoint may call it.
std::string begin_checkpoint(const std::string& run_dir, int64_t step);
// One writer, after all files are written and synced: the manifest last, then the name. Then removes all but the newest
// `keep`, and those of later steps, which a run that went back has left behind.
void commit_checkpoint(const std::string& run_dir, int64_t step, const FileSums& files, int keep);
// Removes .new-step-N after a failure.
void abandon_checkpoint(const std::string& run_dir, int64_t step);

// A small file of a checkpoint: written, synced; its SHA-256.
std::string write_checkpoint_text(const std::string& path, const std::string& text);
// The files of a checkpoint, each compared with its SHA-256. Throws Error (data): the file and the reason.
std::vector<std::string> verify_checkpoint(const std::string& path);

}  // namespace pal::record
