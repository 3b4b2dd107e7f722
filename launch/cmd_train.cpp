// cmd_train: pal train CONFIG [key=value…]: a rank under mpirun or srun; alone with --np it starts mpirun itself.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "core/config/config.h"
#include "core/setup.h"
#include "dist/trainer.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/machine.h"
#include "launch/mpirun.h"
#include "launch/progress.h"
#include "launch/table.h"

namespace pal {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string run_dir;
  int ranks = 0;
  std::string resume = "auto";
};

void train(const Config& config, const Arguments& args, World& world) {
  const auto start = std::chrono::steady_clock::now();
  Trainer trainer(config, world, args.run_dir, args.resume == "never" ? Resume::never : Resume::automatic);
  const bool speaks = world.rank() == 0;
  if (speaks) {
    std::vector<std::vector<std::string>> rows = {{"train", ""}};
    for (const auto& [what, value] : trainer.summary()) rows.push_back({what, value});
    fmt::print("{}", format_table(rows));
    for (const std::string& w : trainer.warnings) fmt::print("warning: {}\n", w);
    if (trainer.next_step() > 0) fmt::print("resumed at step {}\n", trainer.next_step());
    std::fflush(stdout);
  }
  const int64_t first = trainer.next_step();
  if (trainer.done()) {
    if (speaks) fmt::print("this run is finished: {} steps\n", trainer.last_step());
    return;
  }
  StepReport last;
  {
    std::unique_ptr<Progress> bar;
    if (speaks) bar = std::make_unique<Progress>("step", trainer.last_step());
    double rate = 0;
    while (!trainer.done()) {
      last = trainer.step();
      rate = rate == 0 ? last.images_per_s : 0.95 * rate + 0.05 * last.images_per_s;
      if (bar) bar->update(trainer.next_step(), fmt::format("loss {:.4f}  {:.0f} images/s", last.loss, rate));
    }
  }
  trainer.finish();
  if (!speaks) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double images = static_cast<double>((trainer.last_step() - first) * config.integer("train.global_batch"));
  fmt::print("trained {} steps in {:.1f} s, {:.0f} images/s, loss {:.4f}\n", trainer.last_step() - first, seconds.count(),
             images / seconds.count(), last.loss);
  fmt::print("next: pal eval {} linear knn\n", args.run_dir);
}

}  // namespace

int cmd_train(const std::vector<std::string>& arguments, Context& context) {
  Arguments args;
  CLI::App app("Trains an encoder on a similarity graph.", "pal train");
  app.add_option("CONFIG", args.config, "YAML config (configs/ has recipes)")->required();
  app.add_option("KEY=VALUE", args.overrides, "settings that override the config's (pal config --keys lists them)");
  app.add_option("--run-dir", args.run_dir, "run folder; default runs/<config stem>");
  app.add_option("--np", args.ranks, "start this many ranks on this machine with mpirun")->check(CLI::Range(1, 4096));
  app.add_option("--resume", args.resume, "auto goes on from the newest checkpoint of the run folder; never refuses a used folder")
      ->check(CLI::IsMember({"auto", "never"}));
  app.footer(
      "Examples:\n"
      "  pal train configs/quickstart.yaml --np 2\n"
      "  pal train configs/quickstart.yaml graph.kind=supervised --run-dir runs/sup --np 2\n"
      "  mpirun -np 4 --bind-to none pal train configs/cifar10-vicreg.yaml");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  const Config config = Config::load(args.config, args.overrides);
  if (args.run_dir.empty()) args.run_dir = "runs/" + std::filesystem::path(args.config).stem().string();
  PAL_CHECK(config.has("data.train"), "no training set is given", "data.train is empty", "set data.train to a .h5 file");
  PAL_CHECK(config.text("train.device") != "cuda", "this version trains on CPU ranks only", "train.device=cuda",
            "set train.device=cpu or auto");
  if (args.ranks > 0 && !started_as_rank()) {
    std::vector<std::string> rank_args = {"train", args.config};
    rank_args.insert(rank_args.end(), args.overrides.begin(), args.overrides.end());
    rank_args.insert(rank_args.end(), {"--run-dir", args.run_dir, "--resume", args.resume});
    return run_under_mpirun(context.program, rank_args, args.ranks, compute_threads(config, args.ranks));
  }
  keep_freed_memory();
  train(config, args, context.start_world());
  return static_cast<int>(Exit::ok);
}

}  // namespace pal
