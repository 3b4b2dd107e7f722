// gpu_parts: what `pal doctor` runs on the GPUs of a machine: a job of one rank per device, each with the same parts in
// the same order: kernels, operators, loader, NCCL, training, contexts.
//
// Each rank writes a line to its log in the job's folder before and after a part. So a part that ends the process is
// known, too: it has begun and has no end.
#pragma once

#include <string>
#include <vector>

#include "dist/comm/world.h"

namespace pal::launch {

struct GpuOptions {
  bool quick = false;  // small sizes: right or wrong, no speed
  std::string folder;  // of the logs and of the parts' files, the same for all ranks
};

struct GpuPart {
  int rank = 0;
  std::string host, device;  // "cuda:1, PCI 0000:41:00.0"
  std::string part;
  enum class State { passed, failed, ended, not_run } state = State::ended;  // ended: with the process
  std::string found;                                                         // what was compared, or what is wrong
  double seconds = 0;
  std::vector<std::vector<std::string>> rows;  // a table with details; may be empty
};

// Collective: one rank of the job.
void run_gpu_parts(dist::World& world, const GpuOptions& options);
// Starts the job with `ranks` ranks on this machine. Returns its exit code.
int start_gpu_parts(const std::string& program, int ranks, const GpuOptions& options);

// What the ranks have logged, by rank and part.
std::vector<GpuPart> read_gpu_parts(const std::string& folder, int ranks);
bool all_passed(const std::vector<GpuPart>& parts);
// One line per part where all ranks passed it, and one per rank where not.
std::vector<std::vector<std::string>> gpu_part_rows(const std::vector<GpuPart>& parts);

namespace detail {

// A part's result. A part that finds an error throws, or returns it.
struct Checked {
  bool right = true;
  std::string found;
  std::vector<std::vector<std::string>> rows;
};

// Of this rank and its device.
Checked check_operators(int device);
Checked check_loader(int device, const std::string& folder, int rank);
Checked check_nvjpeg(int device, const std::string& folder, int rank);
// Collective. World::use_device has chosen this rank's GPU.
Checked check_collectives(dist::World& world, int device);
Checked check_training(dist::World& world, int device, const std::string& folder);

// Writes a small set of pictures with labels, raw or JPEG, in color.
enum class SmallSet { raw, jpeg };
void write_small_set(const std::string& path, SmallSet kind, int64_t samples);

// "" where nothing is wrong; else the first sentence and how many more there are.
class Wrong {
 public:
  void add(const std::string& sentence);
  // NaN is not within a limit.
  void compare(const std::string& what, double off, double allowed);
  Checked result(const std::string& found) const;

 private:
  std::vector<std::string> sentences_;
};

}  // namespace detail

}  // namespace pal::launch
