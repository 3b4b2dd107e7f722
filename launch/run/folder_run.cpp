#include "launch/run/folder_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/io/cores.h"
#include "core/io/files.h"
#include "core/record/checkpoint_folder.h"
#include "core/record/metrics_reader.h"
#include "core/record/run_info.h"
#include "core/setup/run_spec.h"
#include "dist/comm/device.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMeasuredSteps = 8, kMeasuredFrom = 2, kFewestImages = 10;  // the first steps are slower
constexpr int kMostCpuRanks = 4;

int usable_gpus() {
  const dist::CudaState cuda = dist::cuda_state();
  return cuda.reason.empty() && cuda.torch.empty() ? cuda.devices : 0;
}

bool on_cpu(const FolderRun& folder) {
  return std::find(folder.overrides.begin(), folder.overrides.end(), "train.device=cpu") != folder.overrides.end();
}

std::string value_of(const std::vector<Setting>& settings, const std::string& key) {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.key == key; });
  return found == settings.end() ? "" : found->value;
}

int fitting_ranks(int ranks, int64_t batch) {  // a rank has four samples or more
  return std::clamp<int>(ranks, 1, static_cast<int>(std::max<int64_t>(1, batch / 4)));
}

struct Measured {
  int code = 0;
  std::string log;  // of a run that failed
  double seconds = 0;
};

// A few steps in a folder that is removed afterwards.
Measured measure(const FolderRun& folder, const RecipeFacts& facts, size_t network) {
  const std::string scratch = folder.out + "/measure", log = folder.out + "/measure.log";
  fs::remove_all(scratch);
  fs::create_directories(scratch);
  std::vector<Setting> settings = recipe(facts, network);
  settings.push_back({"train.steps", std::to_string(kMeasuredSteps), "to measure a step"});
  settings.push_back({"log.every", std::to_string(kMeasuredFrom), "the first line is where the measurement begins"});
  io::write_file_atomically(scratch + "/config.yaml", recipe_yaml(settings, ""));
  std::vector<std::string> words = {"train", scratch + "/config.yaml"};
  for (const std::string& override : folder.overrides) {
    if (!override.starts_with("train.steps=") && !override.starts_with("train.epochs=")) words.push_back(override);
  }
  words.insert(words.end(), {"--run-dir", scratch + "/run", "--np", std::to_string(facts.ranks)});
  const CommandEnd end = run_pal(folder.program, words, log, "a few steps to measure one; the folder is removed again");
  Measured measured{end.stopped_by != 0 ? 128 + end.stopped_by : end.code, "", 0};
  if (measured.code == 0)
    measured.seconds = record::seconds_per_step(record::read_metrics(scratch + "/run/metrics.jsonl"));
  else
    measured.log = io::read_whole_file(log);
  PAL_DATA_CHECK(measured.code != 0 || measured.seconds > 0, "the short run logged no step", scratch,
                 "give the same command again");
  fs::remove_all(scratch);
  fs::remove(log);
  return measured;
}

// Tries the networks that fit, from the largest on, and writes the config of the first that gets enough steps.
int write_config(const FolderRun& folder, RecipeFacts facts) {
  const std::vector<size_t> fitting = fitting_networks(facts);
  for (size_t k = 0; k < fitting.size(); ++k) {
    const std::vector<Setting> settings = recipe(facts, fitting[k]);
    const int64_t batch = recipe_batch(facts, fitting[k]);
    facts.ranks = fitting_ranks(folder.ranks, batch);
    const bool last = k + 1 == fitting.size();
    const std::string name =
        fmt::format("{} on views of {} pixels", value_of(settings, "model.backbone"), value_of(settings, "data.size"));
    const Measured measured = measure(folder, facts, fitting[k]);
    if (measured.code != 0) {
      fmt::print(stderr, "{}", measured.log);
      if (last || measured.code > 128) return measured.code;
      fmt::print("{} does not run here; the next smaller network is tried\n", name);
      continue;
    }
    const int64_t steps = steps_for(facts.minutes, measured.seconds, facts.images, batch);
    fmt::print("{}: a step of {} images takes {:.3g} s on {} rank{}: {} steps fit into --minutes {:g}\n", name, batch,
               measured.seconds, facts.ranks, facts.ranks == 1 ? "" : "s", steps, facts.minutes);
    if (!last && steps < kEnoughSteps) {
      fmt::print("{} steps are wanted; the next smaller network is tried\n", kEnoughSteps);
      continue;
    }
    std::vector<Setting> all = settings;
    for (const Setting& s : recipe_length(facts, batch, measured.seconds)) all.push_back(s);
    io::write_file_atomically(
        folder.config(),
        recipe_yaml(all, "# Written by: " + printable(record::command_line()) +
                             "\n# Change a value before the training begins; later ones need a run folder of their own "
                             "(pal help train).\n"));
    return 0;
  }
  return 0;
}

}  // namespace

bool has_finished(const std::string& run) {
  const std::string metrics = run + "/metrics.jsonl";
  return fs::exists(metrics) && record::read_metrics(metrics).done;
}

std::string default_out(const std::string& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  const std::string name = path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  return "runs/" + (name.empty() ? "start" : name);
}

int prepare_folder(FolderRun& folder) {
  const ImageFolder found = look_at_folder(folder.folder, folder.options);
  PAL_DATA_CHECK(found.images >= kFewestImages, folder.folder + " has too few images to train on", found.images,
                 "give at least " + std::to_string(kFewestImages));
  for (const std::string& note : found.notes) fmt::print("{}\n", printable(note));
  std::error_code error;
  fs::create_directories(folder.out, error);
  PAL_CHECK(!error, "cannot make the folder " + folder.out, error.message(), "choose another with --out");
  const bool trained = !record::checkpoint_steps(folder.out).empty() || has_finished(folder.out);
  const ImportEnd import =
      import_once(folder.program, found, folder.data(), trained ? Changed::keep_import : Changed::import_again);
  if (import.code != 0) return import.code;
  const int gpus = on_cpu(folder) ? 0 : usable_gpus();
  if (folder.ranks == 0) folder.ranks = gpus > 0 ? gpus : std::min(io::usable_cores(), kMostCpuRanks);
  if (import.again && !trained) fs::remove(folder.config());  // of other pictures
  const bool written = !fs::exists(folder.config());
  if (written) {
    RecipeFacts facts = recipe_facts(folder.data(), found.labeled ? folder.test() : "");
    facts.groups = folder.options.groups;
    facts.gpus = gpus;
    facts.minutes = folder.minutes;
    if (const int code = write_config(folder, facts); code != 0) return code;
  }
  if (written)
    fmt::print("\n{}: the settings, each with its reason\n{}", folder.config(), io::read_whole_file(folder.config()));
  else
    fmt::print("the config is {}, as it was before\n", folder.config());
  folder.ranks = fitting_ranks(
      folder.ranks, setup::make_run_spec(config::Config::load(folder.config(), folder.overrides)).train.global_batch);
  return 0;
}

}  // namespace pal::launch
