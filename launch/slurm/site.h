// site: what a cluster wants to be asked in: account, partition, how GPUs and MPI are named. A small YAML file.
//
// One table of keys (site.cpp) makes the parser and the help. An unknown key is an error that names the nearest one.
#pragma once

#include <string>
#include <vector>

namespace pal::launch {

enum class Starter { srun, mpirun };

struct Site {
  std::string account, partition, qos, constraint, reservation, memory;  // "" leaves the option out
  std::string gpu_option = "--gpus-per-node={gpus}";  // {gpus}: GPUs of a node; e.g. --gres=gpu:a100:{gpus}
  std::string cpus_per_rank;                          // "" leaves it to SLURM
  Starter starter = Starter::srun;
  std::string mpi_plugin = "pmix";          // srun --mpi=…
  std::vector<std::string> modules;         // module load …
  std::vector<std::string> environment;     // NAME=value
  std::vector<std::string> setup;           // shell lines before the program
  std::vector<std::string> sbatch_options;  // further options, as they are
  std::string container;                    // before the program, e.g. apptainer exec --nv pal.sif
  std::string program;                      // of the nodes; "" the one that submits
  std::string scratch;                      // becomes SLURM_TMPDIR where the site sets none
  std::string signal_seconds = "120";       // notice before the time limit
};

struct SiteKey {
  std::string name, help;
};
std::vector<SiteKey> site_keys();

// "" gives the defaults. Throws Error (usage) naming file, line and key.
Site read_site(const std::string& path);

}  // namespace pal::launch
