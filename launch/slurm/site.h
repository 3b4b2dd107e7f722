// site: a small YAML file with the options of a cluster: account, partition, how to request GPUs and start MPI.
//
// The parser and the help use the table of keys in site.cpp. An unknown key is an error that names the nearest one.
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

}  // namespace pal::launch
