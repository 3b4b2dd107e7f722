// main: pal_bench step|kernels|graph|data|import|checkpoint|recovery|experiment|oracle: speed as a ratio to named
// peers, measured in turns in one run, with its noise. `pal bench` starts this program.
#include <filesystem>

#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/entry.h"
#include "launch/process/subprocess.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

void add_turns(CLI::App& app, std::string& json, int& turns) {
  app.add_option("--json", json, "also write the results to this file");
  app.add_option("--turns", turns, "turns of each side")->check(CLI::Range(2, 1000));
}

void add_shared(CLI::App& app, launch::PeerOptions& peer, std::string& json, int& turns) {
  add_turns(app, json, turns);
  app.add_option("--python", peer.python, "Python that has torch");
  app.add_option("--peer", peer.script, "the peers' script");
  app.add_option("--packages", peer.packages, "where the peers keep their own packages");
}

// A script starts, kills and watches the jobs of both sides; its output is the result.
int bench_recovery(const launch::PeerOptions& peer, const std::string& json, int turns, const std::string& program) {
  launch::check_peer_files(peer);
  std::vector<std::string> command = {
      peer.python, peer.script, "--pal",   (std::filesystem::path(program).parent_path() / "pal").string(),
      "--python",  peer.python, "--turns", std::to_string(turns)};
  if (!json.empty()) command.insert(command.end(), {"--json", json});
  return launch::Subprocess(command, launch::SubprocessOutput::inherit).wait();
}

int bench(const std::vector<std::string>& arguments, launch::Context& context) {
  CLI::App app("Measures speed against named peers, turn by turn on the same machine.", "pal bench");
  app.require_subcommand(1);
  app.footer("Examples:\n  pal bench step --json step.json\n  pal bench kernels --case pairs --json kernels.json");

  StepBenchOptions step;
  std::string rank_in, dtype = "float32";
  CLI::App& steps =
      *app.add_subcommand("step", "One training step with VICReg on two ranks, against PyTorch DDP with gloo.");
  add_shared(steps, step.peer, step.json, step.turns);
  steps
      .add_option("--peer-layout", step.peer_layout,
                  "memory layout of the peer: default, or channels_last, which is ours")
      ->check(CLI::IsMember({"default", "channels_last"}));
  steps.add_option("--steps-per-turn", step.steps_per_turn, "steps in a turn (0: as many as suit the case)")
      ->check(CLI::Range(0, 1000));
  std::vector<std::string> step_names;
  for (const StepCase& c : step_cases()) step_names.push_back(c.name);
  steps.add_option("--case", step.cases, "only these (may be repeated)")->check(CLI::IsMember(step_names));
  steps.add_option("--images", step.images, "folder of Fashion-MNIST's IDX files, for the case quickstart");
  steps.add_option("--rank-in", rank_in)->group("");  // one of our ranks, started by the parent
  steps.add_option("--dtype", dtype)->group("");
  steps.footer(
      "Examples:\n  pal bench step --json step.json\n  pal bench step --case projector --turns 6     (8 GB of memory)");

  std::string side_in;
  const auto add_suite = [&](CLI::App& suite, KernelBenchOptions& o) {
    add_shared(suite, o.peer, o.json, o.turns);
    suite.add_option("--case", o.cases, "only these (may be repeated)")
        ->check(CLI::IsMember(bench_case_names(o.suite)));
    suite.add_option("--threads", o.threads, "threads of each side")->check(CLI::Range(1, 1024));
    suite.add_option("--turn-ms", o.turn_ms, "a turn repeats its case for at least so long")
        ->check(CLI::Range(0, 60000));
    suite.add_flag_callback(
        "--quick", [&o] { o.sizes = BenchSizes::small; },
        "small sizes, to see that it works: the figures mean nothing");
    suite.add_option("--side-in", side_in)->group("");  // our side, started by the parent
  };
  KernelBenchOptions kernels, graph{.suite = BenchSuite::graph, .peer = {.script = "tests/bench/graph_peer.py"}};
  CLI::App& ops =
      *app.add_subcommand("kernels", "The CPU kernels, forward and backward, against what a PyTorch user would call.");
  add_suite(ops, kernels);
  ops.footer(
      "Examples:\n  pal bench kernels --json kernels.json\n  pal bench kernels --case pairs --case simclr --turns 20");

  CLI::App& store = *app.add_subcommand(
      "graph", "The graph store at ImageNet's size and the graph of a batch, against scipy and networkx.");
  add_suite(store, graph);
  store.footer("Example:\n  pal bench graph --json graph.json");

  CheckpointBenchOptions saving;
  CLI::App& saves = *app.add_subcommand(
      "checkpoint", "How long a checkpoint of 1.4 GB holds training up, against torch.save and DCP.");
  add_shared(saves, saving.peer, saving.json, saving.turns);
  saves.add_option("--threads", saving.threads, "threads of our copy")->check(CLI::Range(1, 1024));
  saves.add_option("--folder", saving.folder, "where both sides write; default: a temporary folder")
      ->check(CLI::ExistingDirectory);
  saves.add_flag_callback(
      "--quick", [&] { saving.sizes = BenchSizes::small; },
      "a small model, to see that it works: the figures mean nothing");
  saves.footer("Example:\n  pal bench checkpoint --json checkpoint.json");

  launch::PeerOptions recovery{.script = "tests/bench/recovery.py"};
  std::string recovery_json;
  int recovery_turns = 6;
  CLI::App& recovers =
      *app.add_subcommand("recovery", "From kill -9 of a rank to the first new step, against torchrun.");
  add_shared(recovers, recovery, recovery_json, recovery_turns);
  recovers.footer("Example:\n  pal bench recovery --json recovery.json");

  DataBenchOptions loading;
  std::string data_side_in, open_in;
  CLI::App& data = *app.add_subcommand("data",
                                       "JPEG files to two VICReg views, against torchvision's DataLoader and FFCV; "
                                       "slow disks; a set as large as ImageNet.");
  add_shared(data, loading.peer, loading.json, loading.turns);
  data.add_option("--images", loading.images, "files to make and load; 0 leaves the comparison out")
      ->check(CLI::Range(0, 100000));
  data.add_option("--records", loading.records, "records of the set as large as ImageNet; 0 leaves it out")
      ->check(CLI::Range(0, 100000000));
  data.add_option("--size", loading.size, "side of the views in pixels")->check(CLI::Range(8, 1024));
  data.add_option("--batch", loading.batch, "samples in a batch")->check(CLI::Range(1, 4096));
  data.add_option("--threads", loading.threads, "our threads, and the peer's workers")->check(CLI::Range(1, 256));
  data.add_option("--side-in", data_side_in)->group("");  // our side, started by the parent
  data.add_option("--open", open_in)->group("");
  data.footer("Example:\n  pal bench data --json data.json");

  ImportBenchOptions importing;
  CLI::App& imports = *app.add_subcommand(
      "import", "pal data import of JPEG files, against the disk (copies) and libjpeg (smaller ones).");
  add_turns(imports, importing.json, importing.turns);
  imports.add_option("--source", importing.source, "a folder of JPEG files; if not given, some are made")
      ->check(CLI::ExistingDirectory);
  imports.add_option("--threads", importing.threads, "threads of both sides")->check(CLI::Range(1, 1024));
  imports.add_option("--resize-shorter", importing.resize_shorter, "pixels of the shorter side; 0: only copies")
      ->check(CLI::Range(0, 100000));
  imports.add_option("--images", importing.images, "files to make")->check(CLI::Range(1, 10000000));
  imports.footer("Example:\n  pal bench import --json import.json");

  ExperimentBenchOptions figure;
  CLI::App& closed_form =
      *app.add_subcommand("experiment", "The active figure of the paper in closed form, against numpy.");
  add_shared(closed_form, figure.peer, figure.json, figure.turns);
  closed_form.add_option("--trials", figure.trials, "trials in a turn")->check(CLI::Range(1, 1000));
  closed_form.add_option("--threads", figure.threads, "cores of each side")->check(CLI::Range(1, 256));
  closed_form.footer("Example:\n  pal bench experiment --json experiment.json");

  OracleBenchOptions oracle;
  CLI::App& oracles = *app.add_subcommand("oracle",
                                          "A round of questions of every sampler at ImageNet's size; k-means against "
                                          "faiss, margin sampling against modAL.");
  add_shared(oracles, oracle.peer, oracle.json, oracle.turns);
  bool chooses = false;
  oracles.add_option("--threads", oracle.threads, "threads of each side, of all its ranks together")
      ->check(CLI::Range(1, 1024));
  oracles.add_option("--ranks", oracle.ranks, "numbers of ranks that share the pool; default 1,2")
      ->check(CLI::Range(1, 256))
      ->delimiter(',');
  oracles.add_flag("--as-rank", chooses)->group("");  // started by the parent
  oracles.add_option("--samples", oracle.samples, "N")->check(CLI::Range(100, 100000000));
  oracles.add_option("--dims", oracle.dims, "D")->check(CLI::Range(2, 65536));
  oracles.add_option("--classes", oracle.classes, "C")->check(CLI::Range(2, 100000));
  oracles.add_option("--pool", oracle.pool, "samples drawn for a round (oracle.pool)")->check(CLI::Range(10, 10000000));
  oracles.add_option("--questions", oracle.questions, "in a round")->check(CLI::Range(1, 100000));
  oracles.add_option("--kmeans-rows", oracle.kmeans_rows, "rows of the k-means that faiss does too")
      ->check(CLI::Range(10, 10000000));
  oracles.add_option("--peer-pool", oracle.peer_pool, "pool that modAL holds; 0 leaves the peers out")
      ->check(CLI::Range(0, 1000000));
  oracles.footer("Example:\n  pal bench oracle --json oracle.json");

  CLI::App& comm = *app.add_subcommand("comm", "Collectives of MPI ranks on this machine. A command of pal itself.");

  if (const int code = launch::parse_arguments(app, arguments); code >= 0) return code;
  PAL_CHECK(!comm.parsed(), "pal_bench has no benchmark comm", "", "run pal bench comm");
  if (oracles.parsed() && chooses) {
    bench_oracle_rank(oracle, context.start_world());
    return 0;
  }
  if (oracles.parsed()) return bench_oracle(oracle, context.program);
  if (imports.parsed()) return bench_import(importing);
  if (closed_form.parsed()) return bench_experiment(figure);
  if (data.parsed() && !open_in.empty()) return bench_open_side(open_in);
  if (data.parsed())
    return data_side_in.empty() ? bench_data(loading, context.program) : bench_data_side(loading, data_side_in);
  if (saves.parsed()) return bench_checkpoint(saving);
  if (recovers.parsed()) return bench_recovery(recovery, recovery_json, recovery_turns, context.program);
  if (ops.parsed() || store.parsed()) {
    const KernelBenchOptions& suite = ops.parsed() ? kernels : graph;
    return side_in.empty() ? bench_kernels(suite, context.program) : bench_kernels_side(suite, side_in);
  }
  if (rank_in.empty()) return bench_step(step, context.program);
  bench_step_rank(rank_in, dtype, context.start_world());
  return 0;
}

}  // namespace
}  // namespace pal::bench

int main(int argc, char** argv) { return pal::launch::run_program(argc, argv, pal::bench::bench); }
