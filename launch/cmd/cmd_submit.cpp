// cmd_submit: pal submit CONFIG --nodes n …: writes a readable sbatch script into the run folder and submits it.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/config/config.h"
#include "core/io/files.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/run/load_config.h"
#include "launch/slurm/script.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

struct SubmitArguments {
  std::string config, run_dir, site, mpi, cpus_per_rank, partition;
  std::vector<std::string> overrides, sweeps;
  int seeds = 0;
  int ranks_per_node = 0;
  bool dry_run = false;
};

// Runs sbatch and returns its standard output; throws Error with its message.
std::string call_sbatch(const std::vector<std::string>& command) {
  int out[2];
  PAL_CHECK(pipe(out) == 0, "a pipe cannot be made", std::strerror(errno), "close other programs");
  std::fflush(nullptr);
  const pid_t child = fork();
  PAL_CHECK(child >= 0, "a process cannot be started", std::strerror(errno),
            "close other programs or raise the limit (ulimit -u)");
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    close(out[0]);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(errno == ENOENT ? 127 : 126);
  }
  close(out[1]);
  std::string text;
  char block[512];
  for (ssize_t n; (n = read(out[0], block, sizeof block)) > 0 || (n < 0 && errno == EINTR);)
    text.append(block, n > 0 ? n : 0);
  close(out[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  PAL_CHECK(code != 127, "sbatch is not on this machine", "it is not on PATH",
            "submit from a login node of the cluster; --dry-run prints the script");
  PAL_CHECK(code == 0, "sbatch refused the job", text, "correct the site file (pal help slurm) or the options");
  return text;
}

// The job id in the output of `sbatch --parsable`: "123" or "123;cluster", after any warnings.
std::string job_number(const std::string& output) {
  const size_t line = output.rfind('\n');
  const std::string last = line == std::string::npos ? output : output.substr(line + 1);
  return last.substr(0, last.find(';'));
}

void check_time(const SlurmJob& job, const Site& site) {
  if (job.time.empty()) return;
  const int64_t limit = slurm_seconds(job.time), notice = std::stoll(site.signal_seconds);
  PAL_CHECK(limit >= notice + 60, "the time limit is too short: it must exceed signal_seconds by a minute",
            fmt::format("--time {} is {} s, signal_seconds is {}", job.time, limit, notice),
            "give more time, or lower signal_seconds in the site file");
}

std::string site_help() {
  std::string out = "Keys of a site file (YAML):\n";
  for (const SiteKey& key : site_keys()) out += fmt::format("  {:<15} {}\n", key.name, key.help);
  return out;
}

}  // namespace

int cmd_submit(const std::vector<std::string>& arguments, Context& context) {
  SubmitArguments args;
  SlurmJob job;
  CLI::App app("Writes an sbatch script for a training run, and submits it.", "pal submit");
  app.add_option("CONFIG", args.config, "YAML config")->required();
  app.add_option("KEY=VALUE", args.overrides, "settings that override the config");
  app.add_option("--nodes", job.nodes, "number of nodes")->check(CLI::Range(1, 100000));
  app.add_option("--gpus-per-node", job.gpus_per_node, "GPUs per node, one rank each; 0: CPU ranks")
      ->check(CLI::Range(0, 64));
  app.add_option("--ranks-per-node", args.ranks_per_node, "ranks per node, if not one per GPU")
      ->check(CLI::Range(1, 1024));
  app.add_option("--cpus-per-rank", args.cpus_per_rank, "cores per rank; default: from the site file")
      ->check(CLI::Range(1, 1024));
  app.add_option("--time", job.time, "time limit, as sbatch takes it: 90, 2:30:00, 1-12");
  app.add_option("--run-dir", args.run_dir,
                 "run folder, on a file system that all nodes share; default runs/<name of the config>");
  app.add_option("--name", job.name, "name of the job; default: the name of the config");
  app.add_option("--site", args.site, "site file (pal help slurm); default: $PAL_SITE");
  app.add_option("--partition", args.partition, "partition; default: from the site file");
  app.add_option("--mpi", args.mpi, "program that starts the ranks; default: from the site file, else srun")
      ->check(CLI::IsMember({"srun", "mpirun"}));
  app.add_option("--sweep", args.sweeps, "key=a,b,c: one run per value, as a job array (may be repeated: the product)");
  app.add_option("--seeds", args.seeds, "number of seeds, from 0: one run per seed")->check(CLI::Range(1, 1000));
  app.add_option("--chain", job.chain, "number of jobs, one after another, for sites that do not requeue")
      ->check(CLI::Range(1, 1000));
  app.add_option("--max-requeues", job.max_requeues, "maximum number of requeues")->check(CLI::Range(0, 100000));
  app.add_option("--max-restarts", job.max_deaths, "maximum number of requeues after a rank died")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--dry-run", args.dry_run, "print the script and do nothing else");
  app.footer(site_help() +
             "\nExamples:\n"
             "  pal submit configs/imagenet-vicreg.yaml --nodes 4 --gpus-per-node 8 --time 1-00 --dry-run\n"
             "  pal submit configs/cifar10-vicreg.yaml --gpus-per-node 1 --sweep optim.base_lr=.1,.2,.3 --seeds 3");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  const char* named = std::getenv("PAL_SITE");
  Site site = read_site(!args.site.empty() ? args.site : named != nullptr ? named : "");
  if (!args.mpi.empty()) site.starter = args.mpi == "srun" ? Starter::srun : Starter::mpirun;
  if (!args.cpus_per_rank.empty()) site.cpus_per_rank = args.cpus_per_rank;
  if (!args.partition.empty()) site.partition = args.partition;
  if (job.gpus_per_node > 0 && site.cpus_per_rank.empty()) {
    std::fprintf(stderr,
                 "note: cores per rank are not given, and SLURM's default is often one; a rank decodes its images on "
                 "them: give --cpus-per-rank (the cores of a node / its ranks)\n");
  }
  job.ranks_per_node = args.ranks_per_node > 0 ? args.ranks_per_node : std::max(1, job.gpus_per_node);
  check_time(job, site);

  const std::string stem = fs::path(args.config).stem().string();
  if (args.run_dir.empty()) args.run_dir = "runs/" + stem;
  if (job.name.empty()) job.name = "pal-" + stem;
  job.config = fs::absolute(args.config).lexically_normal().string();
  job.program = context.program;
  job.working_dir = fs::current_path().string();
  job.log_dir = fs::absolute(args.run_dir).lexically_normal().string();
  if (args.seeds > 0) {
    std::string seeds;
    for (int s = 0; s < args.seeds; ++s) seeds += (s > 0 ? "," : "train.seed=") + std::to_string(s);
    args.sweeps.push_back(seeds);
  }
  PAL_CHECK(args.sweeps.empty() || job.chain == 1, "--chain needs a single run", "a sweep is given too",
            "give either --chain or a sweep");
  job.points = sweep_points(job.log_dir, args.sweeps);
  for (SweepPoint& point : job.points) {  // finds mistakes before the job waits in the queue
    point.overrides.insert(point.overrides.begin(), args.overrides.begin(), args.overrides.end());
    const config::Config config = config::Config::load(args.config, point.overrides);
    if (&point == &job.points.front()) print_notes(config);
  }

  const std::string script = sbatch_script(job, site);
  if (args.dry_run) {
    std::fputs(script.c_str(), stdout);
    return 0;
  }
  std::error_code error;
  fs::create_directories(job.log_dir, error);
  PAL_CHECK(!error, "cannot make the run folder " + job.log_dir, error.message(), "choose another with --run-dir");
  const std::string file = job.log_dir + "/job.sbatch";
  io::write_file_atomically(file, script);
  std::string id;
  for (int k = 0; k < job.chain; ++k) {
    std::vector<std::string> command = {"sbatch", "--parsable"};
    if (!id.empty()) command.push_back("--dependency=afterany:" + id);
    command.push_back(file);
    id = job_number(call_sbatch(command));
    fmt::print("{}\n", id);
    std::fflush(stdout);
  }
  std::fprintf(stderr, "%zu run%s in %s; the output of the job: %s/slurm-*.log\n", job.points.size(),
               job.points.size() == 1 ? "" : "s", job.log_dir.c_str(), job.log_dir.c_str());
  return 0;
}

}  // namespace pal::launch
