#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/data/dataset.h"
#include "core/data/loader/augment_spec.h"
#include "core/data/loader/epoch_sampler.h"
#include "core/optim/schedule.h"
#include "core/setup/setup.h"
#include "dist/scale/cluster.h"
#include "dist/scale/scale_inputs.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cmd/internal.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

using Lines = std::vector<std::vector<std::string>>;

struct KnownData {
  std::string text;
  std::shared_ptr<data::Dataset> set = nullptr;
  std::optional<int64_t> samples = {};  // that are trained on
  int64_t labeled = 0;
  int64_t edge_samples = 0;  // of a batch, drawn as known pairs
  int64_t steps_per_epoch(int64_t batch) const {
    return data::EpochSpec{*samples, std::min(batch - edge_samples, *samples)}.steps_per_epoch();
  }
};
bool is_there(const std::string& data) {
  return std::filesystem::exists(data) || !data::expand_glob(data).empty() || !data::shard_files(data).empty();
}

// A data set that is there must pass what `pal train` asks of it. One that is not there is no error: a config may be
// checked on another machine.
KnownData look_at_data(const setup::RunSpec& spec) {
  if (spec.data.train.empty()) return {"data.train is empty: set it before you train"};
  if (!is_there(spec.data.train)) return {fmt::format("not available: {} does not exist", spec.data.train)};
  const auto data = data::Dataset::open(spec.data.train);
  data::augment_options(spec.augment, *data);
  const std::vector<int64_t> subset = setup::training_subset(spec, *data);
  setup::graph_spec(spec.graph, *data);
  const std::vector<int64_t> labels = setup::known_labels(spec, *data, subset);
  const std::vector<int64_t> groups = setup::known_groups(spec, *data, subset);
  const graph::GraphStore store = setup::make_graph_store(spec.graph, *data, labels, groups);
  const auto known = [](const std::vector<int64_t>& of) {
    return std::count_if(of.begin(), of.end(), [](int64_t label) { return label >= 0; });
  };
  const auto labeled = known(labels);
  if (!spec.data.test.empty() && is_there(spec.data.test)) {
    const std::string overlap = data::overlap_warning(*data, *data::Dataset::open(spec.data.test));
    if (!overlap.empty()) fmt::print(stderr, "warning: {}\n", printable(overlap));
  }
  const auto trained = static_cast<int64_t>(subset.size());
  return {fmt::format("{}: {} samples, {} trained on", spec.data.train, data->size(), trained), data, trained, labeled,
          setup::edge_samples(spec, labeled + known(groups), trained, graph::EdgeDraw(store, subset))};
}

// What the start of a run would refuse is refused here, with the same sentences.
void add_questions(Lines& lines, const setup::RunSpec& spec, const KnownData& data) {
  setup::check_batch(spec, *data.samples);
  const oracle::OracleSpec asks = setup::checked_oracle(spec, *data.set, data.labeled);
  if (!asks.asks()) return;
  const std::string sentence =
      setup::too_short_to_ask(asks, setup::total_steps(spec, data.steps_per_epoch(spec.train.global_batch)));
  lines.push_back(
      {"questions", fmt::format("sampler {}, {} labels known{}{}", asks.sampler, data.labeled,
                                asks.templates == oracle::Templates::discover ? ", classes are discovered" : "",
                                sentence.empty() ? "" : "; " + sentence)});
}

std::string bytes_text(double bytes) {
  return bytes >= 1e9   ? fmt::format("{:.2f} GB", bytes / 1e9)
         : bytes >= 1e6 ? fmt::format("{:.1f} MB", bytes / 1e6)
                        : fmt::format("{:.1f} kB", bytes / 1e3);
}

std::string views_text(const setup::RunSpec& spec, const dist::ViewSides& sides) {
  std::string out = fmt::format("{} views of {}x{}", spec.augment.views, sides.large, sides.large);
  if (sides.small > 0) out += fmt::format(" and {} of {}x{}", spec.augment.small_views, sides.small, sides.small);
  return out + (sides.known == dist::ViewSides::Known::assumed
                    ? " (assumed: data.size is 0 and the data set is not available)"
                    : "");
}

// Steps and learning rates. Without the data set an epoch counts as a thousand steps; the curve has the same shape.
void add_schedule(Lines& lines, const setup::RunSpec& spec, const KnownData& data) {
  const int64_t batch = spec.train.global_batch;
  if (data.samples) {
    PAL_DATA_CHECK(*data.samples >= 2, "there are {} samples to train on", *data.samples, "give a larger data set");
  }
  const int64_t per_epoch = data.samples ? data.steps_per_epoch(batch) : 1000;
  const optim::Schedule s = setup::schedule(spec, per_epoch);
  if (data.samples) {
    lines.push_back({"steps", fmt::format("{} ({} per epoch)", s.total_steps, per_epoch)});
  } else if (spec.train.steps) {
    lines.push_back({"steps", fmt::format("{}", s.total_steps)});
  } else {
    lines.push_back({"steps", fmt::format("{} epochs of samples / {} steps", *spec.train.epochs, batch)});
  }
  std::vector<double> curve;
  constexpr int kColumns = 60;
  for (int k = 0; k < kColumns; ++k)
    curve.push_back(s.at(std::min<int64_t>(s.total_steps - 1, k * (s.total_steps - 1) / (kColumns - 1))));
  lines.push_back({"learning rate", sparkline(curve)});
  const double rates[] = {s.at(0), s.at(s.total_steps / 4), s.at(s.total_steps / 2), s.at(3 * s.total_steps / 4),
                          s.at(s.total_steps - 1)};
  lines.push_back({"", fmt::format("peak {:.4g} after {:.1f} % of the run", s.peak,
                                   100.0 * static_cast<double>(s.warmup_steps) / static_cast<double>(s.total_steps))});
  lines.push_back({"", fmt::format("at 0, 25, 50, 75, 100 %: {:.3g}", fmt::join(rates, ", "))});
}

void add_cost(Lines& lines, const setup::RunSpec& spec, const dist::ViewSides& sides, int ranks) {
  const dist::ModelCost model = dist::measure_model(spec, sides);
  const dist::Workload work = dist::step_workload(spec, model);
  dist::Cluster cluster = dist::read_cluster("local");
  cluster.fabric.per_node = std::max(1, ranks);
  const dist::StepCost cost = dist::predict_step(model, work, cluster, ranks);
  lines.push_back({"model", fmt::format("{}, embedding {}: {:.2f} M parameters, {:.3g} GFLOP forward per sample",
                                        config::choice_name(model::kBackbones, spec.model.backbone), model.embedding,
                                        static_cast<double>(model.parameters()) / 1e6, model.flops() / 1e9)});
  const dist::StepCost::Memory& m = cost.memory;
  lines.push_back(
      {"memory per rank",
       fmt::format("{}: weights {}, gradients {}, optimizer {}, activations {}, loss {}, program {}",
                   bytes_text(m.total()), bytes_text(m.weights), bytes_text(m.gradients), bytes_text(m.optimizer),
                   bytes_text(m.activations), bytes_text(m.loss), bytes_text(m.context))});
  if (spec.train.device != setup::Device::cpu && spec.train.dtype == at::kFloat) {
    const double tensors = m.total() - m.context, libraries = dist::read_cluster("a100-8").context_bytes;
    lines.push_back(
        {"memory per GPU", fmt::format("{}: tensors {}, CUDA and its libraries {}", bytes_text(tensors + libraries),
                                       bytes_text(tensors), bytes_text(libraries))});
  }
  lines.push_back(
      {"sent per step", ranks == 1 ? std::string("nothing: one rank")
                                   : fmt::format("{}: gradients {}, batch norm {}, loss {} ({} form)",
                                                 bytes_text(cost.gradient_bytes + cost.norm_bytes + cost.loss_bytes),
                                                 bytes_text(cost.gradient_bytes), bytes_text(cost.norm_bytes),
                                                 bytes_text(cost.loss_bytes), dist::loss_form_name(work.loss.form))});
  lines.push_back({"checkpoint", bytes_text(cost.checkpoint_bytes)});
}

}  // namespace

std::string sparkline(const std::vector<double>& values) {
  static const char* const kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = *std::max_element(values.begin(), values.end());
  std::string out;
  for (const double v : values)
    out += kBars[most > 0 ? std::clamp(static_cast<int>(std::floor(8 * v / most)), 0, 7) : 0];
  return out;
}

int check_training(const setup::RunSpec& spec, int ranks) {
  ranks = std::max(1, ranks);
  const int64_t batch = spec.train.global_batch, views = spec.augment.total_views();
  const KnownData data = look_at_data(spec);
  const dist::ViewSides sides = dist::view_sides(spec);
  Lines lines = {{"check", ""}, {"data", data.text}};
  if (data.set) add_questions(lines, spec, data);
  lines.push_back({"step", fmt::format("{} samples, {}", batch, views_text(spec, sides))});
  lines.push_back(
      {"per rank", fmt::format("{}: {} samples, {} rows", ranks == 1 ? "one rank" : fmt::format("{} ranks", ranks),
                               (batch + ranks - 1) / ranks, (batch + ranks - 1) / ranks * views)});
  add_cost(lines, spec, sides, ranks);
  add_schedule(lines, spec, data);
  fmt::print("{}memory and bytes are predicted by a model (pal help scale); nothing was trained\n",
             format_table(lines));
  if (const std::string sentence = setup::collapse_warning(spec); !sentence.empty())
    fmt::print("warning: {}\n", sentence);
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
