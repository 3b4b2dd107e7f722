#include "core/setup/setup.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "core/data/feature_set.h"
#include "core/graph/build.h"
#include "core/graph/graph_files.h"
#include "core/io/csv.h"
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

// Classes of graph.groups: samples of one value of the column. −1: the file has no value for the sample.
std::vector<int64_t> group_labels(const std::string& groups, const data::Dataset& data) {
  const io::LabelsByFile values(groups, io::read_manifest_column(groups).rows);
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> labels;
  int64_t named = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::string* value = values.find(data.id(i));
    named += value != nullptr;
    labels.push_back(
        value && !value->empty() ? numbers.emplace(*value, static_cast<int64_t>(numbers.size())).first->second : -1);
  }
  PAL_DATA_CHECK(named > 0, groups + " names none of the samples; the first sample is", data.id(0),
                 "each row names a file and its group");
  return labels;
}

bool uses_labels(graph::GraphKind kind) {
  return kind == graph::GraphKind::supervised || kind == graph::GraphKind::mixed || kind == graph::GraphKind::signs ||
         kind == graph::GraphKind::table;
}

}  // namespace

model::ModelSpec model_spec(const RunSpec& spec) {
  model::ModelSpec model = spec.model;
  if (model.backbone != model::BackboneKind::none) return model;
  PAL_CHECK(data::is_feature_file(spec.data.train), "model.backbone=none needs features, but data.train is {}",
            spec.data.train, "give a file of `pal embed`, or *.npy");
  PAL_CHECK(!model.projector.empty(), "model.backbone=none needs a projector, but model.projector is {}", "[]",
            "give the widths of a small head");
  model.channels = data::feature_width(spec.data.train);
  return model;
}

std::vector<int64_t> training_subset(const RunSpec& spec, int64_t samples) {
  std::vector<int64_t> all(samples);
  std::iota(all.begin(), all.end(), int64_t{0});
  const int64_t limit = spec.data.limit;
  if (limit == 0 || limit >= samples) return all;
  return draw(all, limit, spec.train.seed, Purpose::shuffle);
}

namespace {

// People answer whether two groups are the same, so that groups are no classes then: these all differ.
bool asks_about_groups(const RunSpec& spec) { return !spec.graph.groups.empty() && spec.oracle.asks(); }

// The samples of the subset that have a label.
std::vector<int64_t> labeled_samples(const RunSpec& spec, const std::vector<int64_t>& labels,
                                     const std::vector<int64_t>& subset) {
  std::vector<int64_t> labeled;
  for (int64_t s : subset) {
    if (!labels.empty() && labels[s] >= 0) labeled.push_back(s);
  }
  PAL_DATA_CHECK(!labeled.empty() || spec.graph.labeled_fraction == 0,
                 std::string("graph.kind=") + config::choice_name(graph::kGraphKinds, spec.graph.kind) +
                     " needs labels, but the training set has none",
                 "", "import it with labels, use graph.kind=ssl, or set graph.labeled_fraction=0 and an oracle");
  return labeled;
}

// −1 except for graph.labeled_fraction of the labeled samples.
std::vector<int64_t> draw_known(const RunSpec& spec, const std::vector<int64_t>& labels,
                                const std::vector<int64_t>& labeled, int64_t samples) {
  std::vector<int64_t> known(samples, -1);
  const auto count =
      static_cast<int64_t>(std::llround(spec.graph.labeled_fraction * static_cast<double>(labeled.size())));
  for (int64_t s : draw(labeled, count, spec.train.seed, Purpose::labels)) known[s] = labels[s];
  return known;
}

}  // namespace

std::vector<int64_t> known_labels(const RunSpec& spec, const data::Dataset& data, const std::vector<int64_t>& subset) {
  const std::string& groups = spec.graph.groups;
  if (!uses_labels(spec.graph.kind) || asks_about_groups(spec)) return std::vector<int64_t>(data.size(), -1);
  const std::vector<int64_t> labels = groups.empty() ? data.labels() : group_labels(groups, data);
  const std::vector<int64_t> labeled = labeled_samples(spec, labels, subset);
  std::vector<int64_t> known = draw_known(spec, labels, labeled, data.size());
  // A sampler that starts from nothing is given one template of each class among the samples trained on.
  const bool none = std::all_of(known.begin(), known.end(), [](int64_t label) { return label < 0; });
  if (none && oracle::uses_templates(spec.oracle)) {
    std::vector<int64_t> trained(data.size(), -1);
    for (int64_t s : labeled) trained[s] = labels[s];
    known = oracle::draw_template_labels(trained, spec.train.seed);
  }
  return known;
}

std::vector<int64_t> known_groups(const RunSpec& spec, const data::Dataset& data, const std::vector<int64_t>& subset) {
  if (!asks_about_groups(spec)) return {};
  const std::vector<int64_t> groups = group_labels(spec.graph.groups, data);
  return draw_known(spec, groups, labeled_samples(spec, groups, subset), data.size());
}

oracle::OracleSpec checked_oracle(const RunSpec& spec, const data::Dataset& data, int64_t labeled) {
  oracle::OracleSpec asks = spec.oracle;
  asks.templates = oracle::decided_templates(asks, labeled);
  if (!asks.asks()) return asks;
  PAL_CHECK(labeled > 0 || asks.templates != oracle::Templates::given || !oracle::uses_templates(asks),
            "oracle.templates=given needs a known label of each class, but {} labels are known", labeled,
            "give labels (graph.labeled_fraction), or set oracle.templates=discover");
  const std::vector<int64_t>& labels = data.labels();
  PAL_DATA_CHECK(asks.labeler != oracle::LabelerKind::labels ||
                     std::any_of(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; }),
                 "oracle.labeler=labels answers from the labels of the training set, which has none", "",
                 "set oracle.labeler=exchange and let people answer (pal help oracles)");
  oracle::make_query_sampler(asks, data.parents());
  return asks;
}

std::string too_short_to_ask(const oracle::OracleSpec& spec, int64_t steps) {
  if (!spec.asks() || 2 * spec.every < steps) return "";
  const std::string why = ": oracle.every is " + std::to_string(spec.every) + " and the run has " +
                          std::to_string(steps) + " steps; lower oracle.every or raise train.steps";
  return (spec.every < steps ? "no answer takes effect" : "no question is asked") + why;
}

// At the start the encoder does not know the classes: two related samples differ as much as any two, so a column of
// standard deviation s costs 2·invariance·s² + variance·(1 − s), least at s = variance/(4·invariance). When all D
// columns are one direction, the covariance term is covariance·(D − 1)·s⁴; the invariance term gains a fraction of
// 2·invariance·s², because that direction is the one that separates the classes best. Seen on CIFAR-10
// (ResNet-18 and a convnet, 100 steps): with a ratio of the two of 0.04 one direction is left, with 0.3 two, with 1.3
// and more ten, as many as classes.
std::string collapse_warning(const RunSpec& spec) {
  const loss::LossSpec& loss = spec.loss;
  const bool related =
      (spec.graph.kind == graph::GraphKind::supervised || spec.graph.kind == graph::GraphKind::mixed) &&
      spec.graph.labeled_fraction > 0.5 && spec.graph.groups.empty();  // groups may be small: most edges join views
  if (loss.kind != loss::LossKind::vicreg || !related || loss.invariance <= 0 || spec.model.projector.empty())
    return "";
  const double width = static_cast<double>(spec.model.projector.back());
  const double spread = std::min(1.0, loss.variance / (4 * loss.invariance));
  if (loss.covariance * (width - 1) * spread * spread >= 0.2 * loss.invariance) return "";
  return fmt::format(
      "loss.invariance={:g}, loss.variance={:g} and loss.covariance={:g} are known to collapse a projector of {:g} "
      "columns "
      "on a graph of labels; try loss.variance={:g} loss.covariance={:g}",
      loss.invariance, loss.variance, loss.covariance, width, 2 * loss.invariance, 0.4 * loss.invariance);
}

void check_batch(const RunSpec& spec, int64_t trained) {
  PAL_CHECK(spec.train.global_batch <= trained,
            "train.global_batch is larger than the " + std::to_string(trained) + " samples trained on",
            spec.train.global_batch, "give at most " + std::to_string(trained));
}

graph::GraphSpec graph_spec(const graph::GraphSettings& settings, const data::Dataset& data) {
  graph::GraphSpec spec;
  spec.kind = settings.kind;
  spec.alpha = settings.alpha;
  spec.missing = settings.missing;
  spec.seed = settings.seed;
  if (spec.kind == graph::GraphKind::table && settings.table != "zero-one") {
    spec.table = std::make_shared<graph::LossTable>(graph::read_loss_table(settings.table));
  }
  if (spec.kind == graph::GraphKind::regression || spec.kind == graph::GraphKind::ranking) {
    spec.targets = std::make_shared<graph::Targets>(graph::read_targets(settings.targets, data.size()));
    PAL_DATA_CHECK(spec.kind == graph::GraphKind::regression || spec.targets->width >= 2,
                   settings.targets + " has {} number per line", spec.targets->width, "a ranking needs two or more");
  }
  return spec;
}

graph::GraphStore make_graph_store(const graph::GraphSettings& settings, const data::Dataset& data,
                                   std::vector<int64_t> labels, const std::vector<int64_t>& groups) {
  graph::GraphStore store(data.size(), settings.deduction);
  graph::redraw_labels(labels, settings.label_noise, settings.seed);
  groups.empty() ? store.set_labels(labels) : store.set_groups(groups);
  if (!settings.pairs.empty()) {
    std::optional<io::NameIndex> names;
    const auto names_of = [&]() -> const io::NameIndex& {
      if (!names) names.emplace(data::sample_names(data));
      return *names;
    };
    std::vector<graph::WeightedPair> pairs = graph::read_pairs(settings.pairs, data.size(), names_of).pairs;
    graph::flip_weights(pairs, settings.pair_noise, settings.seed);
    store.set_edges(graph::WeightedEdges(data.size(), std::move(pairs), settings.pairs));
  }
  return store;
}

bool relates_samples(const RunSpec& spec) { return !spec.graph.pairs.empty() || uses_labels(spec.graph.kind); }

int64_t edge_samples(const RunSpec& spec, int64_t labeled, int64_t trained, const graph::EdgeDraw& draw) {
  constexpr double kOften = 0.5;  // of the rows: chance is enough
  if (!relates_samples(spec)) return 0;
  if (spec.graph.pairs.empty()) {
    if (labeled == 0 && !spec.oracle.asks()) return 0;
    // Samples of one class have no positive weight in a table; members of many small classes seldom meet by chance.
    const bool meet =
        spec.graph.kind == graph::GraphKind::table || draw.meets_by_chance(spec.train.global_batch) >= kOften;
    if (labeled == trained && meet) return 0;
  }
  return static_cast<int64_t>(std::floor(spec.graph.edge_share * static_cast<double>(spec.train.global_batch)));
}

int64_t total_steps(const RunSpec& spec, int64_t steps_per_epoch) {
  PAL_ASSERT(spec.train.steps || spec.train.epochs, "a run has a length");
  return spec.train.steps ? *spec.train.steps : *spec.train.epochs * steps_per_epoch;
}

optim::Schedule schedule(const RunSpec& spec, int64_t steps_per_epoch) {
  optim::Schedule s;
  PAL_ASSERT(spec.optim.lr || spec.optim.base_lr, "a run has a learning rate");
  s.peak = spec.optim.lr ? *spec.optim.lr : *spec.optim.base_lr * static_cast<double>(spec.train.global_batch) / 256.0;
  s.total_steps = total_steps(spec, steps_per_epoch);
  const double warmup = spec.optim.warmup_epochs * static_cast<double>(steps_per_epoch);
  s.warmup_steps = std::min(static_cast<int64_t>(std::llround(warmup)), s.total_steps / 10);
  s.final_ratio = spec.optim.final_ratio;
  return s;
}

int compute_threads(const TrainSpec& spec, double cores) {
  return spec.threads > 0 ? spec.threads : std::max(1, static_cast<int>(cores + 1e-6));
}

}  // namespace pal::setup
