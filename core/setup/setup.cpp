#include "core/setup/setup.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/data/feature_set.h"
#include "core/graph/build.h"
#include "core/graph/graph_files.h"
#include "core/optim/schedule.h"
#include "core/oracle/oracle.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::setup {
namespace {

// `count` of `from`, drawn by (seed, purpose), ascending. A sample's chance depends on its id only.
std::vector<int64_t> draw(const std::vector<int64_t>& from, int64_t count, uint64_t seed, Purpose purpose) {
  std::vector<std::pair<uint64_t, int64_t>> keyed;
  keyed.reserve(from.size());
  for (int64_t s : from) keyed.emplace_back(Random(seed, purpose, 0, static_cast<uint64_t>(s)).next_u64(), s);
  std::nth_element(keyed.begin(), keyed.begin() + count, keyed.end());
  std::vector<int64_t> drawn;
  drawn.reserve(count);
  for (int64_t k = 0; k < count; ++k) drawn.push_back(keyed[k].second);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

bool uses_labels(graph::GraphKind kind) {
  return kind == graph::GraphKind::supervised || kind == graph::GraphKind::mixed || kind == graph::GraphKind::signs ||
         kind == graph::GraphKind::table;
}

}  // namespace

at::ScalarType scalar_type(const config::Config& config) {
  return config.text("train.dtype") == "float64" ? at::kDouble : at::kFloat;
}

model::ModelSpec model_spec(const config::Config& config) {
  model::ModelSpec spec;
  spec.backbone = config.text("model.backbone");
  spec.stem = config.text("model.stem");
  spec.convnet_widths = config.integer_list("model.widths");
  spec.projector = config.integer_list("model.projector");
  spec.predictor = config.integer_list("model.predictor");
  spec.patch = config.integer("model.patch");
  spec.image = config.integer("data.size");
  spec.drop_path = config.real("model.drop_path");
  spec.batch_norm = config.text("model.batch_norm");
  spec.seed = static_cast<uint64_t>(config.integer("train.seed"));
  spec.dtype = scalar_type(config);
  if (spec.backbone == "none") {
    const std::string& train = config.text("data.train");
    PAL_CHECK(data::is_feature_file(train), "model.backbone=none needs features, but data.train is", train,
              "give a file of `pal embed`, or *.npy");
    PAL_CHECK(!spec.projector.empty(),
              "model.backbone=none without a projector: there is nothing to train; model.projector", "[]",
              "give the widths of a small head");
    spec.channels = data::feature_width(train);
  }
  return spec;
}

optim::OptimSpec optim_spec(const config::Config& config) {
  optim::OptimSpec spec;
  spec.kind = config.text("optim.kind");
  spec.momentum = config.real("optim.momentum");
  spec.weight_decay = config.real("optim.weight_decay");
  spec.lars_eta = config.real("optim.lars_eta");
  return spec;
}

std::vector<int64_t> training_subset(const config::Config& config, const data::Dataset& data) {
  std::vector<int64_t> all(data.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  const int64_t limit = config.integer("data.limit");
  if (limit == 0 || limit >= data.size()) return all;
  return draw(all, limit, static_cast<uint64_t>(config.integer("train.seed")), Purpose::shuffle);
}

std::vector<int64_t> known_labels(const config::Config& config, const data::Dataset& data,
                                  const std::vector<int64_t>& subset) {
  std::vector<int64_t> known(data.size(), -1);
  if (!uses_labels(graph_kind(config))) return known;
  const std::vector<int64_t>& labels = data.labels();
  std::vector<int64_t> labeled;
  for (int64_t s : subset) {
    if (!labels.empty() && labels[s] >= 0) labeled.push_back(s);
  }
  const double fraction = config.real("graph.labeled_fraction");
  PAL_DATA_CHECK(!labeled.empty() || fraction == 0,
                 "graph.kind=" + config.text("graph.kind") + " needs labels, but the training set has", 0,
                 "import it with labels, use graph.kind=ssl, or set graph.labeled_fraction=0 and an oracle");
  const auto count = static_cast<int64_t>(std::llround(fraction * static_cast<double>(labeled.size())));
  const auto seed = static_cast<uint64_t>(config.integer("train.seed"));
  for (int64_t s : draw(labeled, count, seed, Purpose::labels)) known[s] = labels[s];
  // A sampler that starts from nothing is given one template of each class among the samples trained on.
  if (count == 0 && oracle::uses_templates(config)) {
    std::vector<int64_t> trained(data.size(), -1);
    for (int64_t s : labeled) trained[s] = labels[s];
    known = oracle::draw_template_labels(trained, seed);
  }
  return known;
}

graph::GraphKind graph_kind(const config::Config& config) {
  const std::string& kind = config.text("graph.kind");
  if (kind == "supervised") return graph::GraphKind::supervised;
  if (kind == "mixed") return graph::GraphKind::mixed;
  if (kind == "signed") return graph::GraphKind::signs;
  if (kind == "table") return graph::GraphKind::table;
  if (kind == "regression") return graph::GraphKind::regression;
  if (kind == "ranking") return graph::GraphKind::ranking;
  if (kind == "pairs") return graph::GraphKind::pairs;
  return graph::GraphKind::ssl;
}

graph::GraphSpec graph_spec(const config::Config& config, const data::Dataset& data) {
  graph::GraphSpec spec;
  spec.kind = graph_kind(config);
  spec.alpha = config.real("graph.alpha");
  spec.missing = config.real("graph.missing");
  spec.seed = static_cast<uint64_t>(config.integer("train.seed"));
  if (spec.kind == graph::GraphKind::table && config.text("graph.table") != "zero-one") {
    spec.table = std::make_shared<graph::LossTable>(graph::read_loss_table(config.text("graph.table")));
  }
  if (spec.kind == graph::GraphKind::regression || spec.kind == graph::GraphKind::ranking) {
    spec.targets = std::make_shared<graph::Targets>(graph::read_targets(config.text("graph.targets"), data.size()));
    PAL_DATA_CHECK(spec.kind == graph::GraphKind::regression || spec.targets->width >= 2,
                   config.text("graph.targets") + ": numbers per line", spec.targets->width,
                   "a ranking orders two or more");
  }
  return spec;
}

graph::Deduction deduction(const config::Config& config) {
  const std::string& name = config.text("graph.deduction");
  return name == "on" ? graph::Deduction::on : name == "once" ? graph::Deduction::once : graph::Deduction::off;
}

graph::GraphStore make_graph_store(const config::Config& config, const data::Dataset& data,
                                   std::vector<int64_t> labels) {
  const auto seed = static_cast<uint64_t>(config.integer("train.seed"));
  graph::GraphStore store(data.size(), deduction(config));
  graph::redraw_labels(labels, config.real("graph.label_noise"), seed);
  store.set_labels(labels);
  if (config.has("graph.pairs")) {
    const std::string& path = config.text("graph.pairs");
    std::vector<graph::WeightedPair> pairs = graph::read_pairs(path, data.size()).pairs;
    graph::flip_weights(pairs, config.real("graph.pair_noise"), seed);
    store.set_edges(graph::WeightedEdges(data.size(), std::move(pairs), path));
  }
  return store;
}

int64_t edge_samples(const config::Config& config, int64_t labeled, int64_t trained) {
  const bool pairs = config.has("graph.pairs");
  if (!pairs && (!uses_labels(graph_kind(config)) || labeled == trained)) return 0;
  if (!pairs && labeled == 0 && config.text("oracle.sampler") == "none") return 0;
  const auto batch = static_cast<double>(config.integer("train.global_batch"));
  return static_cast<int64_t>(std::floor(config.real("graph.edge_share") * batch));
}

oracle::StopLimits stop_limits(const config::Config& config) {
  return {.questions = config.integer("oracle.budget"),
          .cost = config.real("oracle.budget_cost"),
          .hours = config.real("oracle.budget_hours"),
          .plateau = config.integer("oracle.plateau"),
          .gain = config.real("oracle.plateau_gain"),
          .agreement = config.real("oracle.agreement")};
}

int64_t total_steps(const config::Config& config, int64_t steps_per_epoch) {
  return config.has("train.steps") ? config.integer("train.steps") : config.integer("train.epochs") * steps_per_epoch;
}

optim::Schedule schedule(const config::Config& config, int64_t steps_per_epoch) {
  optim::Schedule s;
  s.peak = config.has("optim.lr")
               ? config.real("optim.lr")
               : config.real("optim.base_lr") * static_cast<double>(config.integer("train.global_batch")) / 256.0;
  s.total_steps = total_steps(config, steps_per_epoch);
  const double warmup = config.real("optim.warmup_epochs") * static_cast<double>(steps_per_epoch);
  s.warmup_steps = std::min(static_cast<int64_t>(std::llround(warmup)), s.total_steps / 10);
  s.final_ratio = config.real("optim.final_ratio");
  return s;
}

int compute_threads(const config::Config& config, double cores) {
  const auto asked = static_cast<int>(config.integer("train.threads"));
  return asked > 0 ? asked : std::max(1, static_cast<int>(cores + 1e-6));
}

}  // namespace pal::setup
