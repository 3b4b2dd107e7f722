// script: writes the sbatch script of a job, which a user can read, change and submit again.
//
// The script acts on the exit code of the program. 0: done. 75 (checkpointed): requeue, up to a limit. 2, 3, 4 and 76:
// stop. Any other code means that a rank died: requeue a few times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/slurm/site.h"

namespace pal::launch {

// One run of the job: an array has several.
struct SweepPoint {
  std::string run_dir;
  std::vector<std::string> overrides;
};

struct SlurmJob {
  std::string name;
  std::string config;   // absolute
  std::string program;  // absolute
  std::string working_dir;
  std::string log_dir;             // of the job's own output
  std::vector<SweepPoint> points;  // one, or an array
  int nodes = 1;
  int gpus_per_node = 0;  // 0: CPU ranks
  int ranks_per_node = 1;
  std::string time;  // as sbatch takes it; "" the partition's default
  int max_requeues = 50;
  int max_deaths = 3;
  int chain = 1;  // > 1: this many jobs, one after another, instead of requeueing
};

// Seconds of "90", "90:00", "2:30:00", "1-12", "1-12:30:00"; throws Error (usage).
int64_t slurm_seconds(const std::string& time);

// `--sweep optim.lr=.1,.2` → the settings of one key; commas inside [ ] belong to a value.
std::vector<std::string> sweep_values(const std::string& text);
// The product of several sweeps, the last one fastest; a run folder for each point under `base`.
std::vector<SweepPoint> sweep_points(const std::string& base, const std::vector<std::string>& sweeps);

// A word of a shell script, quoted if necessary.
std::string shell_word(const std::string& text);

std::string sbatch_script(const SlurmJob& job, const Site& site);

}  // namespace pal::launch
