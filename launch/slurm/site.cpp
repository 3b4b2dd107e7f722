#include "core/config/source.h"
#include "core/config/suggest.h"
#include "kernels/base/error.h"
#include "launch/slurm/script.h"

namespace pal::launch {
namespace {

struct Entry {
  SiteKey key;
  std::string Site::*text;
  std::vector<std::string> Site::*list;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {{"account", "account to charge: --account"}, &Site::account, nullptr},
      {{"partition", "--partition"}, &Site::partition, nullptr},
      {{"qos", "--qos"}, &Site::qos, nullptr},
      {{"constraint", "kind of node: --constraint"}, &Site::constraint, nullptr},
      {{"reservation", "--reservation"}, &Site::reservation, nullptr},
      {{"memory", "memory of a node: --mem (0: all of it)"}, &Site::memory, nullptr},
      {{"gpu_option", "option that requests GPUs; {gpus} is their number per node"}, &Site::gpu_option, nullptr},
      {{"cpus_per_rank", "--cpus-per-task"}, &Site::cpus_per_rank, nullptr},
      {{"mpi", "program that starts the ranks: srun or mpirun"}, nullptr, nullptr},
      {{"mpi_plugin", "srun --mpi=... (srun --mpi=list prints the plugins)"}, &Site::mpi_plugin, nullptr},
      {{"modules", "list: module load ..."}, nullptr, &Site::modules},
      {{"environment", "list: NAME=value"}, nullptr, &Site::environment},
      {{"setup", "list: shell lines before the program"}, nullptr, &Site::setup},
      {{"sbatch_options", "list: more options of sbatch"}, nullptr, &Site::sbatch_options},
      {{"container", "command before the program, e.g. apptainer exec --nv pal.sif"}, &Site::container, nullptr},
      {{"program", "path of pal on the nodes; default: the submitting program"}, &Site::program, nullptr},
      {{"scratch", "local folder of a node; becomes SLURM_TMPDIR if that is not set"}, &Site::scratch, nullptr},
      {{"signal_seconds", "notice before the time limit, for the last checkpoint"}, &Site::signal_seconds, nullptr},
  };
  return table;
}

void take(Site& site, const config::Setting& setting) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    names.push_back(entry.key.name);
    if (entry.key.name != setting.key) continue;
    if (entry.list != nullptr) {
      PAL_CHECK(setting.shape != config::Setting::Shape::scalar, setting.origin + ": " + setting.key + " is a list",
                config::printable(setting.items[0]), "write " + setting.key + ": [a, b]");
      site.*entry.list = setting.items;
      return;
    }
    PAL_CHECK(setting.shape != config::Setting::Shape::list, setting.origin + ": {} takes one value, not a list",
              setting.key, "write " + setting.key + ": value");
    const std::string value = setting.items.empty() ? "" : setting.items[0];
    PAL_CHECK(value.find('\n') == std::string::npos, setting.origin + ": {} has several lines", setting.key,
              "write it on one line");
    if (entry.text != nullptr) {
      site.*entry.text = value;
      return;
    }
    PAL_CHECK(value == "srun" || value == "mpirun", setting.origin + ": mpi is {}", config::printable(value),
              "choose srun or mpirun");
    site.starter = value == "srun" ? Starter::srun : Starter::mpirun;
    return;
  }
  PAL_CHECK(false, setting.origin + ": a site file has no key {}", config::printable(setting.key),
            "the nearest is " + config::suggest(setting.key, names) + " (pal help slurm lists them)");
}

}  // namespace

std::vector<SiteKey> site_keys() {
  std::vector<SiteKey> keys;
  for (const Entry& entry : entries()) keys.push_back(entry.key);
  return keys;
}

Site read_site(const std::string& path) {
  Site site;
  if (path.empty()) return site;
  for (const config::Setting& setting : config::read_settings(path, config::Expand::everything)) take(site, setting);
  const auto digits = [&](const std::string& value, const std::string& key) {
    PAL_CHECK(value.empty() || value.find_first_not_of("0123456789") == std::string::npos, path + ": " + key + " is {}",
              config::printable(value), "give a whole number");
  };
  digits(site.cpus_per_rank, "cpus_per_rank");
  digits(site.signal_seconds, "signal_seconds");
  PAL_CHECK(!site.signal_seconds.empty(), path + ": signal_seconds is empty", "",
            "give a whole number, or leave the line out");
  for (const std::string& variable : site.environment) {
    PAL_CHECK(variable.find('=') != std::string::npos && variable[0] != '=', path + ": environment holds {}",
              config::printable(variable), "write NAME=value");
  }
  return site;
}

}  // namespace pal::launch
