#include "launch/slurm/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "core/config/source.h"
#include "kernels/base/error.h"

namespace pal::launch {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string quoted(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) out.push_back(shell_word(word));
  return joined(out, " ");
}

// A line break in a name would make the rest of it a line of the script.
void check_line(const std::string& text) {
  PAL_CHECK(std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }),
            "this name holds a line break or another control character", config::printable(text), "use another name");
}

// A value as sbatch reads it in a line of the script, by rules that are not the shell's: blanks end it, # begins a
// comment, and in double quotes a backslash takes the next character as it is.
std::string sbatch_value(const std::string& text) {
  if (std::all_of(text.begin(), text.end(),
                  [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("_-+./,:@%=", c) != nullptr; }))
    return text;
  std::string out = "\"";
  for (const char c : text) out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return out + "\"";
}

std::string directives(const SlurmJob& job, const Site& site) {
  std::vector<std::string> options = {"--job-name=" + sbatch_value(job.name), "--nodes=" + std::to_string(job.nodes),
                                      "--ntasks-per-node=" + std::to_string(job.ranks_per_node)};
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) options.push_back(option + "=" + sbatch_value(value));
  };
  add("--cpus-per-task", site.cpus_per_rank);
  if (job.gpus_per_node > 0) {
    std::string gpus = site.gpu_option;
    if (const size_t at = gpus.find("{gpus}"); at != std::string::npos)
      gpus.replace(at, 6, std::to_string(job.gpus_per_node));
    options.push_back(gpus);
  }
  add("--mem", site.memory);
  add("--time", job.time);
  add("--account", site.account);
  add("--partition", site.partition);
  add("--qos", site.qos);
  add("--constraint", site.constraint);
  add("--reservation", site.reservation);
  if (job.points.size() > 1) add("--array", fmt::format("0-{}", job.points.size() - 1));
  // srun: SLURM signals the ranks. mpirun: SLURM signals the script, which forwards the signal to mpirun and so to the
  // ranks.
  add("--signal", (site.starter == Starter::srun ? "USR2@" : "B:USR2@") + site.signal_seconds);
  options.push_back(job.chain > 1 ? "--no-requeue" : "--requeue");
  options.push_back("--open-mode=append");
  add("--output", job.log_dir + (job.points.size() > 1 ? "/slurm-%A_%a.log" : "/slurm-%j.log"));
  options.insert(options.end(), site.sbatch_options.begin(), site.sbatch_options.end());
  std::string out;
  for (const std::string& option : options) {
    check_line(option);
    out += "#SBATCH " + option + "\n";
  }
  return out;
}

std::string which_run(const SlurmJob& job) {
  if (job.points.size() == 1) {
    return fmt::format("run={}\nsettings=({})\n", shell_word(job.points[0].run_dir), quoted(job.points[0].overrides));
  }
  std::string out = "case $SLURM_ARRAY_TASK_ID in\n";
  for (size_t k = 0; k < job.points.size(); ++k) {
    out += fmt::format("  {}) run={} settings=({}) ;;\n", k, shell_word(job.points[k].run_dir),
                       quoted(job.points[k].overrides));
  }
  return out + "  *) echo \"there is no run number $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\nesac\n";
}

std::string environment(const SlurmJob& job, const Site& site) {
  std::string out;
  if (!site.modules.empty()) out += "module load " + quoted(site.modules) + "\n";
  for (const std::string& line : site.setup) out += line + "\n";
  if (!site.scratch.empty()) out += fmt::format("export SLURM_TMPDIR=${{SLURM_TMPDIR:-{}}}\n", site.scratch);
  out += "export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}   # srun does not inherit it from sbatch\n";
  if (job.gpus_per_node > 0) {
    out +=
        "# export NCCL_SOCKET_IFNAME=ib0    # the network interface for setup, if NCCL picks the wrong one\n"
        "# export NCCL_IB_HCA=mlx5          # the InfiniBand cards to use\n"
        "# export NCCL_DEBUG=INFO           # what NCCL chose\n";
  }
  for (const std::string& variable : site.environment) {
    const size_t equals = variable.find('=');
    out += "export " + variable.substr(0, equals) + "=" + shell_word(variable.substr(equals + 1)) + "\n";
  }
  return out;
}

std::string start(const SlurmJob& job, const Site& site) {
  const std::string program = (site.container.empty() ? "" : site.container + " ") +
                              shell_word(site.program.empty() ? job.program : site.program);
  const std::string command =
      fmt::format("{} train {} \"${{settings[@]}}\" --run-dir \"$run\"", program, shell_word(job.config));
  std::string out =
      "# Every node must be able to read the run folder, because it holds the checkpoints.\n"
      "srun --nodes=$SLURM_NNODES --ntasks=$SLURM_NNODES --ntasks-per-node=1 --cpus-per-task=1 --mpi=none \\\n"
      "  test -d \"$run\" || give_up 76 \"some nodes cannot read the run folder $run; put it on a shared file "
      "system\"\n";
  if (site.starter == Starter::srun) {
    const std::string binding =
        job.gpus_per_node > 0 ? " --gpu-bind=none" : "";  // every rank sees them all and takes its own
    return out + fmt::format("srun --mpi={} --cpu-bind=cores{} --kill-on-bad-exit=1 \\\n  {}\ncode=$?\n",
                             site.mpi_plugin, binding, command);
  }
  return out +
         "[ \"$(id -u)\" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1   # in a "
         "container\n"
         "mpirun --version 2>/dev/null | grep -q 'Open MPI' || give_up 76 \"the mpirun on PATH is not Open MPI's; load "
         "the module of an Open MPI\"\n" +
         fmt::format("mpirun -np {} --map-by ppr:{}:node --bind-to none \\\n  {} &\n", job.nodes * job.ranks_per_node,
                     job.ranks_per_node, command) +
         "mpirun=$!\n"
         "trap 'kill -USR2 $mpirun' USR2         # mpirun forwards it to the ranks\n"
         "while :; do                            # a signal interrupts wait\n"
         "  wait $mpirun\n"
         "  code=$?\n"
         "  kill -0 $mpirun 2>/dev/null || break\n"
         "done\n";
}

std::string what_next(const SlurmJob& job) {
  const std::string again =
      job.chain > 1 ? "  echo \"$(date +%T) $1; the next job of the chain resumes the run\"\n  exit 0\n"
                    : fmt::format(
                          "  ((${{SLURM_RESTART_COUNT:-0}} < {})) || give_up 76 \"it was queued {} times already\"\n"
                          "  echo \"$(date +%T) $1; queued again\"\n"
                          "  exec scontrol requeue $SLURM_JOB_ID\n",
                          job.max_requeues, job.max_requeues);
  return "again() {\n" + again +
         "}\n"
         "deaths=$(cat \"$run/slurm-deaths\" 2>/dev/null || echo 0)\n"
         "case $code in\n"
         "  0) rm -f \"$run/slurm-deaths\" ;;\n"
         "  75) again \"it wrote a checkpoint before the limit\" ;;\n"
         "  2 | 3 | 4 | 76) give_up $code \"exit code $code: another start would not help\" ;;\n" +
         fmt::format("  *)\n    ((deaths < {})) || give_up $code \"a rank died $deaths times before\"\n",
                     job.max_deaths) +
         "    echo $((deaths + 1)) >\"$run/slurm-deaths\"\n"
         "    again \"a rank died (exit $code)\"\n"
         "    ;;\n"
         "esac\n";
}

}  // namespace

int64_t slurm_seconds(const std::string& time) {
  const auto bad = [&] {
    throw Error(Exit::usage,
                "this is not a time limit: '" + time + "'; write minutes, hours:minutes:seconds or days-hours");
  };
  std::vector<int64_t> days, fields;
  std::string number;
  for (const char c : time + ":") {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      number += c;
      continue;
    }
    if (number.empty() || number.size() > 6 || (c != ':' && c != '-')) bad();
    if (c == '-') {
      if (!days.empty() || !fields.empty()) bad();
      days.push_back(std::stoll(number));
    } else {
      fields.push_back(std::stoll(number));
    }
    number.clear();
  }
  if (fields.size() > 3) bad();
  int64_t seconds = 0;
  if (!days.empty()) {  // d-h, d-h:m, d-h:m:s
    constexpr int64_t kUnit[] = {3600, 60, 1};
    for (size_t k = 0; k < fields.size(); ++k) seconds += fields[k] * kUnit[k];
    return seconds + days[0] * 86400;
  }
  if (fields.size() == 3) return fields[0] * 3600 + fields[1] * 60 + fields[2];
  return fields[0] * 60 + (fields.size() == 2 ? fields[1] : 0);  // m, m:s
}

std::vector<std::string> sweep_values(const std::string& text) {
  const size_t equals = text.find('=');
  PAL_CHECK(equals != std::string::npos && equals > 0 && equals + 1 < text.size(), "this is not a sweep", text,
            "write section.key=a,b,c");
  std::vector<std::string> out = {text.substr(0, equals + 1)};
  int depth = 0;
  for (size_t k = equals + 1; k < text.size(); ++k) {
    depth += text[k] == '[' ? 1 : text[k] == ']' ? -1 : 0;
    if (text[k] == ',' && depth == 0) {
      out.push_back(text.substr(0, equals + 1));
    } else {
      out.back() += text[k];
    }
  }
  for (const std::string& value : out)
    PAL_CHECK(value.size() > equals + 1, "the sweep has an empty value", text, "write section.key=a,b,c");
  return out;
}

std::vector<SweepPoint> sweep_points(const std::string& base, const std::vector<std::string>& sweeps) {
  std::vector<SweepPoint> points = {{base, {}}};
  for (const std::string& sweep : sweeps) {
    std::vector<SweepPoint> next;
    for (const SweepPoint& point : points) {
      for (const std::string& value : sweep_values(sweep)) {
        next.push_back(point);
        next.back().overrides.push_back(value);
      }
    }
    points = std::move(next);
    PAL_CHECK(points.size() <= 1000, "the sweep has {} runs", points.size(),
              "SLURM arrays have at most about 1000 jobs: sweep fewer values");
  }
  for (SweepPoint& point : points) {
    if (point.overrides.empty()) continue;
    std::string name = joined(point.overrides, ",");
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && !std::strchr(".,=+-", c); }, '_');
    point.run_dir += "/" + name;
  }
  return points;
}

std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("_-./=:,+@%", c) != nullptr; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string sbatch_script(const SlurmJob& job, const Site& site) {
  for (const std::string& name : {job.config, job.program, job.working_dir}) check_line(name);
  return "#!/bin/bash\n" + directives(job, site) +
         "\n# Written by `pal submit`. You may change it and submit it again with sbatch.\n"
         "give_up() {   # CODE WHY: writes slurm-stopped, so that later jobs of the chain do not start\n"
         "  echo \"$(date +%T) $2; not queued again\" | tee \"$run/slurm-stopped\" >&2\n"
         "  exit \"$1\"\n"
         "}\n" +
         which_run(job) + fmt::format("cd {} || exit 2\nmkdir -p \"$run\"\n", shell_word(job.working_dir)) +
         (job.chain > 1 ? "[ ! -e \"$run/slurm-stopped\" ] || { echo \"an earlier job of the chain stopped: $(cat "
                          "\"$run/slurm-stopped\")\" >&2; exit 76; }\n"
                        : "rm -f \"$run/slurm-stopped\"\n") +
         environment(job, site) + "\n" + start(job, site) + "\n" + what_next(job);
}

}  // namespace pal::launch
