// script: reads the options of a cluster, and writes the sbatch script of a job, which a user can read, change and
// submit again.
//
// The script acts on the exit code of the program. 0: done. 75 (checkpointed): requeue, up to a limit. 2, 3, 4 and 76:
// stop. Any other code means that a rank died: requeue a few times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pal::launch {

enum class Starter { srun, mpirun };

// The options of a cluster, from a small YAML file: account, partition, how to request GPUs and start MPI. The parser
// and the help use the table of keys in site.cpp. An unknown key is an error that names the nearest one.
struct Site {
  std::string account, partition, qos, constraint, reservation, memory;  // "" leaves the option out
  std::string gpu_option = "--gpus-per-node={gpus}";  // {gpus}: GPUs of a node; e.g. --gres=gpu:a100:{gpus}
  std::string cpus_per_rank;                          // "" leaves it to SLURM
  Starter starter = Starter::srun;
  std::string mpi_plugin = "pmix";          // srun --mpi=…
  std::vector<std::string> modules;         // module load …
  std::vector<std::string> environment;     // NAME=value
  std::vector<std::string> setup;           // shell lines before the program
  std::vector<std::string> sbatch_options;  // more options
  std::string container;                    // before the program, e.g. apptainer exec --nv pal.sif
  std::string program;                      // on the nodes; "": the submitting program
  std::string scratch;                      // becomes SLURM_TMPDIR if that is not set
  std::string signal_seconds = "120";       // notice before the time limit
};

struct SiteKey {
  std::string name, help;
};
std::vector<SiteKey> site_keys();

// "" gives the defaults. Throws Error (usage) with file, line and key.
Site read_site(const std::string& path);

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
