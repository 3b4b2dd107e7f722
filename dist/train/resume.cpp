#include "dist/train/resume.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "kernels/base/error.h"

namespace pal::dist {
namespace {

// Another run's state, for a run folder that has none.
record::LoadedCheckpoint take_over(const ResumeContext& of, std::vector<std::string>& warnings) {
  const Origin& origin = *of.origin;
  record::LoadedCheckpoint loaded = load_origin(origin, [&](const std::string& w) { warnings.push_back(w); });
  PAL_CHECK(loaded.state.step < of.last_step,
            fmt::format("the checkpoint of --resume, {}, is not before the last step of this run, {}; its step",
                        loaded.path, of.last_step),
            loaded.state.step, "give an earlier one, or raise train.steps");
  if (of.spec.oracle.asks()) adopt_ledger(origin, of.run_dir, loaded.state.ledger_position);
  const std::string other = origin.run_dir + "/config.yaml";
  if (origin.run_dir.empty() || !std::filesystem::exists(other)) return loaded;
  const std::vector<std::string> keys = config::Config::load_resolved(other).differing_keys(of.spec.config);
  if (!keys.empty())
    warnings.push_back(fmt::format("goes on from {} with other settings: {}", loaded.path, fmt::join(keys, ", ")));
  return loaded;
}

// Of rank 0.
Resumed load(const ResumeContext& of, const Checkpointer::Groups& state) {
  Resumed resumed;
  std::optional<record::LoadedCheckpoint> loaded =
      record::load_newest_checkpoint(of.run_dir, [&](const std::string& w) { resumed.warnings.push_back(w); });
  resumed.from = loaded ? ResumedFrom::own : of.origin ? ResumedFrom::other : ResumedFrom::nothing;
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
                               " before, " + of.fingerprint + " now): the run goes on, but not bit for bit");
  }
  return resumed;
}

}  // namespace

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
      const at::Tensor dense =
          mine.cpu().contiguous();  // convolutions lie channels-last, a Comm carries what is contiguous
      comm.broadcast(dense, 0);
      if (!dense.is_same(mine)) mine.copy_(dense);
    }
  }
  return resumed;
}

}  // namespace pal::dist
