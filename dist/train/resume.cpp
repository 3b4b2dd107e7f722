#include "dist/train/resume.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/io/files.h"
#include "core/record/checkpoint_folder.h"
#include "core/record/metrics_reader.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLedger = "/ledger.sqlite";
constexpr const char* kJournal = "/ledger.sqlite-journal";  // of a writer that was killed; SQLite rolls it back

// The state of another run, for a run folder without a checkpoint.
record::LoadedCheckpoint take_over(const ResumeContext& of, std::vector<std::string>& warnings) {
  const Origin& origin = *of.origin;
  record::LoadedCheckpoint loaded = load_origin(origin, [&](const std::string& w) { warnings.push_back(w); });
  PAL_CHECK(loaded.state.step < of.last_step,
            fmt::format("the checkpoint of --resume, {}, is not before the last step of this run, {}; its step",
                        loaded.path, of.last_step),
            loaded.state.step, "give an earlier one, or raise train.steps");
  if (of.spec.oracle.asks()) adopt_ledger(origin, of.run_dir, loaded.state.ledger_position);
  const std::string other = origin.run_dir + "/config.yaml";
  if (origin.run_dir.empty() || !fs::exists(other)) return loaded;
  const std::vector<std::string> keys = config::Config::load_resolved(other).differing_keys(of.spec.config);
  if (!keys.empty())
    warnings.push_back(fmt::format("continues from {} with other settings: {}", loaded.path, fmt::join(keys, ", ")));
  return loaded;
}

// Runs on rank 0.
Resumed load(const ResumeContext& of, const Checkpointer::Groups& state) {
  Resumed resumed;
  std::optional<record::LoadedCheckpoint> loaded =
      record::load_newest_checkpoint(of.run_dir, [&](const std::string& w) { resumed.warnings.push_back(w); });
  resumed.from = loaded ? ResumedFrom::own : of.origin ? ResumedFrom::other : ResumedFrom::nothing;
  const std::string metrics = of.run_dir + "/metrics.jsonl";
  if (resumed.from == ResumedFrom::nothing && fs::exists(metrics)) {
    const std::vector<record::MetricLine> lines = record::read_metrics(metrics).lines;
    if (!lines.empty())
      resumed.warnings.push_back(
          fmt::format("the run was trained to step {}, but it has no usable checkpoint: it starts again at step 0",
                      lines.back().step));
  }
  if (resumed.from == ResumedFrom::nothing) return resumed;
  if (!loaded) loaded = take_over(of, resumed.warnings);
  resumed.step = loaded->state.step;
  for (const auto& [group, tensors] : state) {
    record::restore(tensors,
                    group == "model"   ? loaded->model
                    : group == "optim" ? loaded->optim
                                       : loaded->extra,
                    loaded->path + "/" + group + ".safetensors");
  }
  if (loaded->state.fingerprint != of.fingerprint) {
    resumed.warnings.push_back("resumed with other ranks, threads or instructions (" + loaded->state.fingerprint +
                               " before, " + of.fingerprint + " now): the run continues, but not bit for bit");
  }
  return resumed;
}

}  // namespace

RunFolder::RunFolder(const std::string& path, const config::Config& config, Resume resume)
    : path_(path), config_(config.dump()) {
  std::error_code error;
  fs::create_directories(path, error);
  PAL_CHECK(!error && fs::is_directory(path), "cannot make the run folder " + path, error.message(),
            "choose another with --run-dir");
  lock_.emplace(path);
  const bool checkpoints = !record::checkpoint_steps(path).empty();
  if (resume == Resume::never) {
    PAL_CHECK(!checkpoints, "the run folder already holds a run", path,
              "choose another with --run-dir, remove it, or leave out --resume never");
    return;
  }
  const std::string file = path + "/config.yaml", metrics = path + "/metrics.jsonl";
  const record::RunMetrics logged = fs::exists(metrics) ? record::read_metrics(metrics) : record::RunMetrics{};
  PAL_DATA_CHECK(checkpoints || !logged.done, "the run is finished, but its checkpoints are gone", path,
                 "put them back, or start at step 0 with --resume never, which replaces its metrics.jsonl");
  const bool is_run = checkpoints || !logged.lines.empty() || fs::exists(path + kLedger);
  if (!is_run || !fs::exists(file)) return;
  const config::Config before = config::Config::load_resolved(file);
  std::vector<std::string> keys = before.differing_keys(config);
  std::erase_if(keys, [&](const std::string& key) {
    // Where given worked, auto is the same; run folders from before auto hold given.
    if (key == "oracle.templates") return before.formatted(key) == "given" && config.formatted(key) == "auto";
    if (key != "train.steps" && key != "train.epochs") return false;
    if (before.has(key)) other_length_ = key + "=" + before.formatted(key);
    return true;
  });
  PAL_CHECK(keys.empty(), "the run folder " + path + " holds a run of another config; different keys",
            fmt::format("{}", fmt::join(keys, ", ")),
            "give --run-dir NEW to start at step 0, or --resume " + path + " --run-dir NEW to start from this run");
}

void RunFolder::keep_config() const { io::write_file_atomically(path_ + "/config.yaml", config_); }

Origin find_origin(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  PAL_CHECK(fs::is_directory(path), "--resume is neither auto, never nor a folder", folder,
            "give a run folder, or one of its checkpoints/step-N");
  if (fs::is_directory(path / "checkpoints")) return {path.string(), ""};
  PAL_CHECK(fs::exists(path / "manifest.json"), "there is no checkpoint in --resume", folder,
            "give a run folder with checkpoints, or one of its checkpoints/step-N");
  const fs::path absolute = fs::absolute(path / "manifest.json").parent_path();  // without a slash at the end
  const bool in_run = absolute.parent_path().filename() == "checkpoints";
  return {in_run ? absolute.parent_path().parent_path().string() : "", absolute.string()};
}

record::LoadedCheckpoint load_origin(const Origin& origin, const std::function<void(const std::string&)>& warn) {
  if (!origin.checkpoint.empty()) return record::load_checkpoint(origin.checkpoint);
  std::optional<record::LoadedCheckpoint> newest = record::load_newest_checkpoint(origin.run_dir, warn);
  PAL_DATA_CHECK(newest.has_value(), "the run of --resume has no checkpoint yet", origin.run_dir,
                 "wait for its first one");
  return std::move(*newest);
}

void adopt_ledger(const Origin& origin, const std::string& run_dir, int64_t answers) {
  if (fs::exists(run_dir + kLedger)) return;
  if (origin.run_dir.empty() || !fs::exists(origin.run_dir + kLedger)) {
    PAL_CHECK(answers == 0, "the checkpoint of --resume uses answers, but their ledger is not beside it; answers",
              answers, "give it inside its run folder, as RUN/checkpoints/step-N");
    return;
  }
  const record::RunLock other(origin.run_dir);  // no job writes to it during the copy
  if (fs::exists(origin.run_dir + kJournal))
    io::write_file_atomically(run_dir + kJournal, io::read_whole_file(origin.run_dir + kJournal));
  io::write_file_atomically(run_dir + kLedger, io::read_whole_file(origin.run_dir + kLedger));
  fs::permissions(run_dir + kLedger, fs::status(origin.run_dir + kLedger).permissions());
}

Resumed resume(const ResumeContext& of, const Checkpointer::Groups& state, comm::Comm& comm) {
  Resumed resumed;
  if (comm.rank() == 0) resumed = load(of, state);
  at::Tensor words = at::full({2}, resumed.step, at::kLong);
  int64_t* const word = words.data_ptr<int64_t>();
  word[1] = static_cast<int64_t>(resumed.from);
  comm.broadcast(words, 0);
  resumed.step = word[0];
  resumed.from = static_cast<ResumedFrom>(word[1]);
  if (resumed.from == ResumedFrom::nothing) return resumed;
  const at::NoGradGuard no_grad;
  for (const auto& group : state) {
    for (const auto& named : group.second) {
      at::Tensor mine = named.second;
      const at::Tensor dense = mine.cpu().contiguous();  // convolutions are channels-last, a Comm needs contiguous
      comm.broadcast(dense, 0);
      if (!dense.is_same(mine)) mine.copy_(dense);
    }
  }
  return resumed;
}

}  // namespace pal::dist
