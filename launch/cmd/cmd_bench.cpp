// cmd_bench: pal bench comm, which measures this machine's collectives; every other benchmark is in the program
// pal_bench (tests/bench), which is started when it lies beside pal.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/cmd/internal.h"
#include "launch/commands.h"

namespace pal::launch {
namespace {

int run_comm(const std::vector<std::string>& arguments, Context& context) {
  CLI::App app("Collectives of MPI ranks on this machine, and the alpha-beta model of pal plan beside them.",
               "pal bench comm");
  CommBenchOptions comm;
  bool as_rank = false;
  app.add_option("--json", comm.json, "also write the results to this file");
  app.add_option("--turns", comm.turns, "turns of each side")->check(CLI::Range(2, 1000));
  app.add_option("--cluster", comm.cluster, "write the links as a cluster file for pal plan");
  app.add_option("--device", comm.device,
                 "cpu: MPI; cuda: NCCL between this machine's GPUs, in the columns of nccl-tests")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--ranks", comm.ranks, "numbers of ranks; default 2,4")->check(CLI::Range(2, 256))->delimiter(',');
  app.add_option("--most-bytes", comm.most_bytes, "largest message")->check(CLI::Range(int64_t{64}, int64_t{1} << 32));
  app.add_flag("--as-rank", as_rank)->group("");  // started by the parent
  app.footer(
      "Example:\n  pal bench comm --json comm.json --cluster mine.yaml && pal plan configs/quickstart.yaml --cluster "
      "mine.yaml --gpus 1,2");

  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (!as_rank) return bench_comm(comm, context.program);
  bench_comm_rank(comm, context.start_world());
  return 0;
}

std::string pal_bench(const Context& context) {  // the benchmark program, beside this one
  return (std::filesystem::path(context.program).parent_path() / "pal_bench").string();
}

// Replaces this process by pal_bench with the same arguments.
[[noreturn]] void exec_pal_bench(const std::vector<std::string>& arguments, const Context& context) {
  const std::string program = pal_bench(context);
  PAL_CHECK(std::filesystem::exists(program), "the benchmark program is not built", program,
            "build it with: cmake --build build --target pal_bench (pal bench comm needs no such program)");
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw Error(Exit::bug, program + " could not be started");
}

}  // namespace

int cmd_bench(const std::vector<std::string>& arguments, Context& context) {
  const bool help = arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h";
  if (help && !std::filesystem::exists(pal_bench(context))) {
    std::printf(
        "Measures speed.\n\nUsage: pal bench NAME [options]\n\n"
        "  comm   collectives of MPI ranks on this machine, and the alpha-beta model of pal plan beside them\n\n"
        "All other benchmarks compare with named peers and are in the program pal_bench, which is not built here:\n"
        "  cmake --build build --target pal_bench\n\n"
        "Example:\n  pal bench comm --json comm.json\n");
    return static_cast<int>(arguments.empty() ? Exit::usage : Exit::ok);
  }
  if (!arguments.empty() && arguments[0] == "comm") return run_comm({arguments.begin() + 1, arguments.end()}, context);
  exec_pal_bench(arguments, context);
}

}  // namespace pal::launch
