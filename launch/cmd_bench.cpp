// cmd_bench: pal bench step|kernels: speed as a ratio to named peers, in one interleaved run with its noise.
#include "launch/bench_kernels.h"
#include "launch/bench_step.h"
#include "launch/cli.h"
#include "launch/commands.h"

namespace pal {
namespace {

void add_shared(CLI::App& app, PeerOptions& peer, std::string& json, int& turns) {
  app.add_option("--json", json, "also write the results to this file");
  app.add_option("--python", peer.python, "Python that has torch");
  app.add_option("--peer", peer.script, "the peers' script");
  app.add_option("--packages", peer.packages, "where the peers keep their own packages");
  app.add_option("--turns", turns, "turns of each side")->check(CLI::Range(2, 1000));
}

}  // namespace

int cmd_bench(const std::vector<std::string>& arguments, Context& context) {
  CLI::App app("Measures speed against named peers, turn by turn on the same machine.", "pal bench");
  app.require_subcommand(1);
  app.footer("Examples:\n  pal bench step --json step.json\n  pal bench kernels --case pairs --json kernels.json");

  StepBenchOptions step;
  std::string rank_in, dtype = "float32";
  CLI::App& steps = *app.add_subcommand("step", "One training step of ResNet-18 with VICReg on two ranks, against PyTorch DDP with gloo.");
  add_shared(steps, step.peer, step.json, step.turns);
  steps.add_option("--peer-layout", step.peer_layout, "memory layout of the peer: default, or channels_last, which is ours")
      ->check(CLI::IsMember({"default", "channels_last"}));
  steps.add_option("--steps-per-turn", step.steps_per_turn, "steps in a turn")->check(CLI::Range(1, 1000));
  steps.add_option("--batch", step.batch, "samples over both ranks")->check(CLI::Range(4, 4096));
  steps.add_option("--rank-in", rank_in)->group("");   // a rank of ours, started by the parent
  steps.add_option("--dtype", dtype)->group("");
  steps.footer("Example:\n  pal bench step --json step.json");

  KernelBenchOptions kernels;
  std::string side_in;
  CLI::App& ops = *app.add_subcommand("kernels", "The CPU kernels, forward and backward, against what a PyTorch user would call.");
  add_shared(ops, kernels.peer, kernels.json, kernels.turns);
  ops.add_option("--case", kernels.cases, "only these (may be repeated)")->check(CLI::IsMember(kernel_case_names()));
  ops.add_option("--threads", kernels.threads, "threads of each side")->check(CLI::Range(1, 1024));
  ops.add_option("--turn-ms", kernels.turn_ms, "a turn repeats its case for at least so long")->check(CLI::Range(0, 60000));
  ops.add_flag_callback("--quick", [&] { kernels.sizes = BenchSizes::small; }, "small sizes, to see that it works: the figures mean nothing");
  ops.add_option("--side-in", side_in)->group("");     // our side, started by the parent
  ops.footer("Examples:\n  pal bench kernels --json kernels.json\n  pal bench kernels --case pairs --case simclr --turns 20");

  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (ops.parsed() && !side_in.empty()) return bench_kernels_side(kernels, side_in);
  if (ops.parsed()) return bench_kernels(kernels, context.program);
  if (rank_in.empty()) return bench_step(step, context.program);
  bench_step_rank(rank_in, dtype, context.start_world());
  return 0;
}

}  // namespace pal
