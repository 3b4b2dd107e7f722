// cmd_train: pal train CONFIG [key=value…]: a rank under mpirun or srun; alone with --np it starts mpirun itself.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/io/cores.h"
#include "core/ops/torch_cuda.h"
#include "core/record/checkpoint_folder.h"
#include "core/setup/setup.h"
#include "dist/comm/world.h"
#include "dist/health/consistency.h"
#include "dist/health/hang_detector.h"
#include "dist/train/trainer.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/cmd/internal.h"
#include "launch/commands.h"
#include "launch/process/machine.h"
#include "launch/process/mpirun.h"
#include "launch/process/signals.h"
#include "launch/process/supervise.h"
#include "launch/run/device_option.h"
#include "launch/run/folder_run.h"
#include "launch/run/load_config.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string run_dir;
  int ranks = 0;
  RestartLimits restarts;
  bool allow_faults = false;
  bool check = false;
  std::string resume = "auto";

  std::optional<dist::Origin> origin() const {
    if (resume == "auto" || resume == "never") return std::nullopt;
    return dist::find_origin(resume);
  }
};

std::vector<dist::Fault> asked_faults(const TrainArguments& args) {
  const char* text = std::getenv("PAL_FAULT");
  if (text == nullptr || *text == 0) return {};
  PAL_CHECK(args.allow_faults, "PAL_FAULT asks for failures", text,
            "unset it, or give --allow-faults if that is meant");
  return dist::parse_faults(text);
}

enum class Ending { finished, stopped, gave_up };

// Collective. What this rank computes on; the world carries its tensors from then on.
dist::DeviceDecision training_device(const setup::RunSpec& spec, dist::World& world) {
  dist::DeviceDecision device =
      choose_device(config::choice_name(setup::kDevices, spec.train.device), "train.device", spec.train, world);
  if (device.kind == dist::DeviceKind::cuda && spec.train.deterministic) ops::use_deterministic_algorithms();
  PAL_CHECK(spec.train.precision != model::Precision::bf16 || device.kind == dist::DeviceKind::cuda,
            "bf16 autocast is for GPUs; CPU ranks train in train.dtype", "train.precision=bf16",
            "set train.precision=full");
  if (spec.data.decoder == data::Decoder::nvjpeg) {
    PAL_CHECK(device.kind == dist::DeviceKind::cuda, "nvJPEG runs on GPUs, and these ranks compute on the CPU",
              "data.decoder=nvjpeg", "set data.decoder=cpu");
    const std::string reason = data::nvjpeg_state().reason;
    if (!reason.empty()) throw Error(Exit::usage, reason);
  }
  return device;
}

// Trains from the newest checkpoint to the end, to a stop, or to gradients that stay non-finite: `failed` is that step.
Ending train_on(const setup::RunSpec& spec, const TrainArguments& args, dist::World& world,
                const dist::RunControl& control, const dist::DeviceDecision& device, int64_t* failed) {
  const auto start = std::chrono::steady_clock::now();
  const char* restarts = std::getenv("PAL_RESTARTS");
  const bool again = *failed >= 0 || (restarts != nullptr && std::atoi(restarts) > 0);  // the folder is this job's own
  if (control.watchdog) control.watchdog->set_phase(dist::Phase::long_operation);
  dist::Trainer trainer(
      spec, world, args.run_dir,
      {args.resume == "never" && !again ? dist::Resume::never : dist::Resume::automatic, args.origin()}, control);
  const bool is_rank0 = world.rank() == 0;
  if (is_rank0) {
    std::vector<std::vector<std::string>> rows = {{"train", ""}};
    for (const auto& [what, value] : trainer.summary()) rows.push_back({what, value});
    rows.push_back({"device", (device.kind == dist::DeviceKind::cuda ? fmt::format("cuda:{}", device.ordinal)
                                                                     : std::string("cpu")) +
                                  ": " + device.why});
    fmt::print("{}", format_table(rows));
    for (const std::string& w : trainer.warnings) fmt::print("warning: {}\n", printable(w));
    if (trainer.next_step() > 0) fmt::print("resumed at step {}\n", trainer.next_step());
    std::fflush(stdout);
  }
  const int64_t first = trainer.next_step();
  if (trainer.done()) {
    if (is_rank0) {
      const int64_t waiting = trainer.answers_waiting();
      fmt::print("this run is finished: {} steps{}\n", trainer.last_step(),
                 waiting == 0 ? ""
                              : fmt::format("; {} answers wait: give train.steps={} or more to use them", waiting,
                                            trainer.last_step() + 2 * spec.oracle.every));
    }
    return Ending::finished;
  }
  dist::StepReport last;
  {
    std::unique_ptr<Progress> bar;
    if (is_rank0) bar = std::make_unique<Progress>("step", trainer.last_step());
    double rate = 0;
    while (!trainer.done() && !trainer.stopping() && !last.give_up) {
      last = trainer.step();
      rate = rate == 0 ? last.images_per_s : 0.95 * rate + 0.05 * last.images_per_s;
      if (is_rank0 && !last.warning.empty())
        fmt::print(stderr, "warning: step {}: {}\n", last.step + 1, printable(last.warning));
      if (bar) bar->update(trainer.next_step(), fmt::format("loss {:.4f}  {:.0f} images/s", last.loss, rate));
    }
  }
  if (last.give_up) {
    *failed = last.step;
    return Ending::gave_up;
  }
  if (!trainer.done()) {
    trainer.pause();
    if (is_rank0)
      fmt::print("stopped at step {} with a checkpoint; the same command resumes it\n", trainer.next_step());
    if (is_rank0 && trainer.questions_out() > 0) {
      fmt::print(
          "{} questions wait for answers: {}/questions.jsonl; import answers with: pal answers import {} ANSWERS\n",
          trainer.questions_out(), args.run_dir, args.run_dir);
    }
    return Ending::stopped;
  }
  trainer.finish();
  if (!is_rank0) return Ending::finished;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double images = static_cast<double>((trainer.last_step() - first) * spec.train.global_batch);
  fmt::print("trained {} steps in {:.1f} s, {:.0f} images/s, loss {:.4f}\n", trainer.last_step() - first,
             seconds.count(), images / seconds.count(), last.loss);
  if (!spec.data.test.empty()) fmt::print("next: pal eval {} linear knn\n", args.run_dir);
  return Ending::finished;
}

// One rank, from its start to its end. When gradients stay non-finite, it goes back to the last checkpoint once; when
// the same step fails again, it stops.
Exit train(const setup::RunSpec& spec, const TrainArguments& args, dist::World& world, StopSignals& signals) {
  dist::check_same_program(world.control());  // before anything that a setting could make some ranks wait for
  dist::check_same_config(spec.config, world.control());
  PAL_CHECK(world.size() >= args.restarts.min_ranks,
            "fewer ranks than --min-np, which is " + std::to_string(args.restarts.min_ranks), world.size(),
            "start more ranks, or lower --min-np");
  const dist::DeviceDecision device = training_device(spec, world);
  const char* before = std::getenv("PAL_RESTARTS");
  // The supervisor of --np has printed them already.
  if (world.rank() == 0 && before == nullptr && dist::started_as_rank()) print_notes(spec.config);
  const std::vector<dist::Fault> asked = asked_faults(args);
  dist::Faults faults(asked, world.rank(), before == nullptr ? 0 : std::atoi(before));
  std::optional<dist::Watchdog> watchdog;
  if (spec.train.watchdog) {
    watchdog.emplace(world, args.run_dir,
                     dist::HangLimits{spec.train.heartbeat_seconds, spec.train.stall_seconds, spec.train.hang_seconds});
  }
  const dist::RunControl control{[&] { return signals.asked(); }, asked.empty() ? nullptr : &faults,
                                 watchdog ? &*watchdog : nullptr, torch_device(device)};
  int64_t failed = -1;
  for (;;) {
    const int64_t before_that = failed;
    const Ending ending = train_on(spec, args, world, control, device, &failed);
    if (ending != Ending::gave_up) {
      if (watchdog) watchdog->stop();
      return ending == Ending::stopped ? Exit::again : Exit::ok;
    }
    PAL_CHECK_CODE(Exit::numerics, failed > before_that,
                   fmt::format("the gradient was not finite in {} steps in a row, also after going back to the last "
                               "checkpoint, last at step {}",
                               spec.train.max_skips, failed),
                   "", "lower optim.base_lr or lengthen optim.warmup_epochs; the last checkpoint is unharmed");
    if (world.rank() == 0) {
      fmt::print(stderr,
                 "warning: the gradient was not finite in {} steps in a row, last at step {}; the run goes back to the "
                 "last checkpoint\n",
                 spec.train.max_skips, failed);
    }
  }
}

}  // namespace

int cmd_train(const std::vector<std::string>& arguments, Context& context) {
  TrainArguments args;
  CLI::App app("Trains an encoder on a similarity graph.", "pal train");
  app.add_option("CONFIG|FOLDER", args.config,
                 "YAML config (configs/ has recipes), or a folder of pictures, whose config is chosen as by pal start")
      ->required();
  app.add_option("KEY=VALUE", args.overrides, "settings that override the config's (pal config --keys lists them)");
  app.add_option("--run-dir", args.run_dir, "run folder; default runs/<config stem>, of pictures runs/<folder>");
  app.add_option("--np", args.ranks, "start this many ranks on this machine with mpirun")->check(CLI::Range(1, 4096));
  app.add_option("--max-restarts", args.restarts.max_restarts,
                 "with --np: starts after a rank died or hung, from the last checkpoint")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--min-np", args.restarts.min_ranks,
                 "continue with fewer ranks, down to this many, when a restart with all of them fails too")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--check", args.check,
               "print shapes, steps, learning rates, memory and bytes of --np ranks, and train nothing");
  app.add_flag("--allow-faults", args.allow_faults, "let PAL_FAULT=kind:rank:step make things fail (pal help faults)");
  app.add_option(
      "--resume", args.resume,
      "auto continues from the newest checkpoint of the run folder; never starts at step 0 and refuses a "
      "folder with checkpoints; DIR, another run or one of its checkpoints/step-N, is where a new run folder "
      "starts from");
  app.footer(
      "Examples:\n"
      "  pal train configs/quickstart.yaml --np 2\n"
      "  pal train configs/quickstart.yaml graph.kind=supervised --run-dir runs/sup --np 2\n"
      "  pal train configs/quickstart.yaml optim.base_lr=0.1 --resume runs/quickstart --run-dir runs/lower --np 2\n"
      "  pal train photos --np 2\n"
      "  pal train configs/imagenet-vicreg.yaml --np 8 --min-np 6 --max-restarts 20\n"
      "  mpirun -np 4 --bind-to none pal train configs/cifar10-vicreg.yaml\n"
      "  (as root, mpirun also needs --allow-run-as-root)");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  if (is_picture_folder(args.config)) {
    PAL_CHECK(!dist::started_as_rank(), "a folder of pictures is prepared before ranks start", args.config,
              "give --np instead of mpirun");
    FolderRun folder{context.program, args.config, default_out(args.config)};
    folder.ranks = args.ranks;
    folder.overrides = args.overrides;
    if (const int code = prepare_folder(folder); code != 0) return code;
    args.config = folder.config();
    args.ranks = folder.ranks;
    if (args.run_dir.empty()) args.run_dir = folder.out;
  }
  const setup::RunSpec spec = setup::make_run_spec(load_config(args.config, args.overrides));
  if (args.check) return check_training(spec, args.ranks);
  if (args.run_dir.empty()) args.run_dir = "runs/" + std::filesystem::path(args.config).stem().string();
  PAL_CHECK(!spec.data.train.empty(), "no training set is given", "data.train is empty",
            "set data.train to a .h5 file");
  asked_faults(args);
  args.origin();
  if (args.ranks > 0 && !dist::started_as_rank()) {
    std::vector<std::string> rank_args = {"train", args.config};
    rank_args.insert(rank_args.end(), args.overrides.begin(), args.overrides.end());
    rank_args.insert(rank_args.end(), {"--run-dir", args.run_dir, "--resume", args.resume});
    if (args.restarts.min_ranks > 0)
      rank_args.insert(rank_args.end(), {"--min-np", std::to_string(args.restarts.min_ranks)});
    if (args.allow_faults) rank_args.push_back("--allow-faults");
    PAL_CHECK(args.restarts.min_ranks <= args.ranks, "--min-np is above --np", args.restarts.min_ranks,
              "give at most " + std::to_string(args.ranks));
    SupervisedJob job{
        context.program, rank_args, args.ranks,
        [&](int ranks) { return setup::compute_threads(spec.train, static_cast<double>(io::usable_cores()) / ranks); },
        [&] {
          const std::vector<int64_t> steps = record::checkpoint_steps(args.run_dir);
          return steps.empty() ? int64_t{-1} : steps.front();
        }};
    return supervise(job, args.restarts);
  }
  StopSignals signals;  // before any thread starts
  keep_freed_memory();
  return static_cast<int>(train(spec, args, context.start_world(), signals));
}

}  // namespace pal::launch
