#include "launch/run/trained_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "core/data/loader/augment_spec.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/record/checkpoint.h"
#include "core/record/metrics_reader.h"
#include "core/record/run_lock.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace fs = std::filesystem;

config::Config run_config(const std::string& run) {
  PAL_CHECK(fs::is_directory(run), "this run folder does not exist", run, "give the run folder that pal train printed");
  PAL_CHECK(fs::exists(run + "/config.yaml"), "the folder holds no run (no config.yaml)", run, "give a run folder");
  return config::Config::load_resolved(run + "/config.yaml");
}

setup::RunSpec run_spec(const std::string& run) { return setup::make_run_spec(run_config(run)); }

TrainedRun load_trained_run(const std::string& run, const setup::RunSpec& spec, comm::Comm& comm, at::Device device) {
  const auto warn = [&](const std::string& w) {
    if (comm.rank() == 0) fmt::print(stderr, "warning: {}\n", printable(w));
  };
  const auto checkpoint = record::load_newest_checkpoint(run, warn);
  PAL_DATA_CHECK(checkpoint.has_value(), "the run folder has no usable checkpoint", run, "train it first: pal train");
  const std::string metrics = run + "/metrics.jsonl";
  const record::RunMetrics logged = fs::exists(metrics) ? record::read_metrics(metrics) : record::RunMetrics{};
  const int64_t trained_to = logged.lines.empty() ? 0 : logged.lines.back().step, step = checkpoint->state.step;
  if (trained_to > step && !record::RunLock::held(run))
    warn(fmt::format("the checkpoint is of step {}, but the run was trained to step {}", step, trained_to));
  TrainedRun trained{model::make_encoder(setup::model_spec(spec), comm), checkpoint->state.step, checkpoint->path};
  record::restore(model::model_state(*trained.encoder), checkpoint->model, checkpoint->path + "/model.safetensors");
  trained.encoder->to(device);
  trained.encoder->eval();
  return trained;
}

at::Tensor embed_all(model::Encoder& encoder, const setup::RunSpec& spec, const data::Dataset& data,
                     eval::EmbedWhat what, dist::World& world, const std::string& name) {
  std::vector<int64_t> all(static_cast<size_t>(data.size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  std::unique_ptr<Progress> bar;
  if (world.rank() == 0) bar = std::make_unique<Progress>("embed " + name, data.size() / world.size());
  eval::EmbedOptions options;
  options.what = what;
  options.augment = data::augment_options(spec.augment, data);
  options.dtype = spec.train.dtype;
  options.threads = setup::compute_threads(spec.train, world.cores());
  if (bar) options.progress = [&](int64_t done) { bar->update(done, ""); };
  return eval::embed(encoder, data, all, options, world.compute());
}

}  // namespace pal::launch
