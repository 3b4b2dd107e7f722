// cmd_bench: pal bench step: speed as a ratio to a named peer, in one interleaved run with its noise.
#include "launch/bench_step.h"
#include "launch/cli.h"
#include "launch/commands.h"

namespace pal {

int cmd_bench(const std::vector<std::string>& arguments, Context& context) {
  StepBenchOptions options;
  std::string what, rank_in, dtype = "float32";
  CLI::App app("Measures speed against a named peer, turn by turn on the same machine.", "pal bench");
  app.add_option("WHAT", what, "step: one training step of ResNet-18 with VICReg on two ranks, against PyTorch DDP with gloo")
      ->required()
      ->check(CLI::IsMember({"step"}));
  app.add_option("--json", options.json, "also write the results to this file");
  app.add_option("--python", options.python, "Python that has torch");
  app.add_option("--peer", options.peer, "the peer's script");
  app.add_option("--packages", options.packages, "where the peer keeps its own packages");
  app.add_option("--peer-layout", options.peer_layout, "memory layout of the peer: default, or channels_last, which is ours")
      ->check(CLI::IsMember({"default", "channels_last"}));
  app.add_option("--turns", options.turns, "turns of each side")->check(CLI::Range(2, 1000));
  app.add_option("--steps-per-turn", options.steps_per_turn, "steps in a turn")->check(CLI::Range(1, 1000));
  app.add_option("--batch", options.batch, "samples over both ranks")->check(CLI::Range(4, 4096));
  app.add_option("--rank-in", rank_in)->group("");   // a rank of ours, started by the parent
  app.add_option("--dtype", dtype)->group("");
  app.footer("Example:\n  pal bench step --json step.json");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (rank_in.empty()) return bench_step(options, context.program);
  bench_step_rank(rank_in, dtype, context.start_world());
  return 0;
}

}  // namespace pal
