// run_spec: each key of the config is read here, once.
#include "core/setup/run_spec.h"

#include <optional>

#include "core/config/choices.h"

namespace pal::setup {
namespace {

using config::choice_of;
using config::Config;
using config::NamedChoice;

template <class E, size_t N>
E choice(const Config& c, const char* key, const NamedChoice<E> (&table)[N]) {
  return choice_of(table, c.text(key));
}
std::string text_or_empty(const Config& c, const char* key) { return c.has(key) ? c.text(key) : ""; }
std::optional<int64_t> integer_if_set(const Config& c, const char* key) {
  return c.has(key) ? std::optional(c.integer(key)) : std::nullopt;
}
std::optional<double> real_if_set(const Config& c, const char* key) {
  return c.has(key) ? std::optional(c.real(key)) : std::nullopt;
}
data::Interval interval(const Config& c, const char* key) {
  const std::vector<double> ends = c.real_list(key);
  return {ends[0], ends[1]};
}
int small_integer(const Config& c, const char* key) { return static_cast<int>(c.integer(key)); }
uint64_t seed_of(const Config& c) { return static_cast<uint64_t>(c.integer("train.seed")); }
c10::ScalarType dtype_of(const Config& c) { return choice(c, "train.dtype", kDtypes); }

data::DataSpec data_spec(const Config& c) {
  using data::Decoder;
  using data::Shuffle;
  static constexpr NamedChoice<Decoder> kDecoders[] = {{"cpu", Decoder::cpu}, {"nvjpeg", Decoder::nvjpeg}};
  static constexpr NamedChoice<Shuffle> kShuffles[] = {{"full", Shuffle::full}, {"windows", Shuffle::windows}};
  data::DataSpec s;
  s.train = text_or_empty(c, "data.train");
  s.test = text_or_empty(c, "data.test");
  s.stage = text_or_empty(c, "data.stage");
  s.limit = c.integer("data.limit");
  s.threads = small_integer(c, "data.threads");
  s.readers = small_integer(c, "data.readers");
  s.prefetch = small_integer(c, "data.prefetch");
  s.memory_mb = c.integer("data.memory_mb");
  s.decoder = choice(c, "data.decoder", kDecoders);
  s.shuffle = choice(c, "data.shuffle", kShuffles);
  s.window = c.integer("data.window");
  return s;
}

data::AugmentSpec augment_spec(const Config& c) {
  using data::Decode;
  using kernels::Interpolation;
  static constexpr NamedChoice<Decode> kDecodes[] = {{"scaled", Decode::scaled}, {"full", Decode::full}};
  static constexpr NamedChoice<Interpolation> kFilters[] = {{"bilinear", Interpolation::bilinear},
                                                            {"bicubic", Interpolation::bicubic}};
  data::AugmentSpec s;
  s.views = c.integer("augment.views");
  s.small_views = c.integer("augment.small_views");
  s.size = small_integer(c, "data.size");
  s.small_size = small_integer(c, "augment.small_size");
  s.crop_scale = interval(c, "augment.crop_scale");
  s.small_crop_scale = interval(c, "augment.small_crop_scale");
  s.crop_ratio = interval(c, "augment.crop_ratio");
  s.blur_sigma = interval(c, "augment.blur_sigma");
  s.interpolation = choice(c, "augment.interpolation", kFilters);
  s.flip = c.real_list("augment.flip");
  s.jitter = c.real_list("augment.jitter");
  s.gray = c.real_list("augment.gray");
  s.blur = c.real_list("augment.blur");
  s.solarize = c.real_list("augment.solarize");
  const std::vector<double> strength = c.real_list("augment.jitter_strength");
  s.jitter_strength = {strength[0], strength[1], strength[2], strength[3]};
  s.noise = c.real("augment.noise");
  s.mean = c.real_list("augment.mean");
  s.std = c.real_list("augment.std");
  s.decode = choice(c, "data.decode", kDecodes);
  s.seed = seed_of(c);
  return s;
}

model::ModelSpec model_settings(const Config& c) {
  model::ModelSpec s;
  s.backbone = choice(c, "model.backbone", model::kBackbones);
  s.stem = choice(c, "model.stem", model::kStems);
  s.init = text_or_empty(c, "model.init");
  s.convnet_widths = c.integer_list("model.widths");
  s.projector = c.integer_list("model.projector");
  s.predictor = c.integer_list("model.predictor");
  s.patch = c.integer("model.patch");
  s.image = c.integer("data.size");
  s.drop_path = c.real("model.drop_path");
  s.batch_norm = choice(c, "model.batch_norm", model::kBatchNormScopes);
  s.seed = seed_of(c);
  s.dtype = dtype_of(c);
  return s;
}

graph::GraphSettings graph_settings(const Config& c) {
  using graph::Deduction;
  static constexpr NamedChoice<Deduction> kDeductions[] = {
      {"on", Deduction::on}, {"once", Deduction::once}, {"off", Deduction::off}};
  graph::GraphSettings s;
  s.kind = choice(c, "graph.kind", graph::kGraphKinds);
  s.alpha = c.real("graph.alpha");
  s.labeled_fraction = c.real("graph.labeled_fraction");
  s.label_noise = c.real("graph.label_noise");
  s.groups = text_or_empty(c, "graph.groups");
  s.table = c.text("graph.table");
  s.targets = text_or_empty(c, "graph.targets");
  s.pairs = text_or_empty(c, "graph.pairs");
  s.pair_noise = c.real("graph.pair_noise");
  s.missing = c.real("graph.missing");
  s.deduction = choice(c, "graph.deduction", kDeductions);
  s.edge_share = c.real("graph.edge_share");
  s.seed = seed_of(c);
  return s;
}

loss::LossSpec loss_spec(const Config& c) {
  using namespace loss;
  using graph::SelfLoops;
  static constexpr NamedChoice<Reduction> kReductions[] = {{"mean", Reduction::mean}, {"sum", Reduction::sum}};
  static constexpr NamedChoice<Moments> kMoments[] = {{"per_view", Moments::per_view}, {"pooled", Moments::pooled}};
  static constexpr NamedChoice<BarlowForm> kBarlow[] = {{"cross", BarlowForm::cross}, {"graph", BarlowForm::graph}};
  static constexpr NamedChoice<PairDraw> kDraws[] = {{"any", PairDraw::any}, {"halves", PairDraw::halves}};
  static constexpr NamedChoice<SampledForm> kForms[] = {{"unbiased", SampledForm::unbiased},
                                                        {"printed", SampledForm::printed}};
  static constexpr NamedChoice<std::optional<SelfLoops>> kLoops[] = {
      {"auto", std::nullopt}, {"on", SelfLoops::on}, {"off", SelfLoops::off}};
  LossSpec s;
  s.kind = choice(c, "loss.kind", kLosses);
  s.reduction = choice(c, "loss.reduction", kReductions);
  s.invariance = c.real("loss.invariance");
  s.variance = c.real("loss.variance");
  s.covariance = c.real("loss.covariance");
  s.epsilon = c.real("loss.epsilon");
  s.margin = c.real("loss.margin");
  s.moments = choice(c, "loss.moments", kMoments);
  s.temperature = c.real("loss.temperature");
  s.barlow = choice(c, "loss.barlow", kBarlow);
  s.lambda = c.real("loss.lambda");
  s.scale = c.real("loss.scale");
  s.queue = c.integer("loss.queue");
  s.neighbors = c.integer("loss.neighbors");
  s.pairs = c.integer("loss.pairs");
  s.draw = choice(c, "loss.draw", kDraws);
  s.form = choice(c, "loss.form", kForms);
  s.self_loops = choice(c, "graph.self_loops", kLoops);
  s.seed = seed_of(c);
  s.dtype = dtype_of(c);
  return s;
}

optim::OptimSpec optim_spec(const Config& c) {
  optim::OptimSpec s;
  s.kind = choice(c, "optim.kind", optim::kOptimizers);
  s.lr = real_if_set(c, "optim.lr");
  s.base_lr = real_if_set(c, "optim.base_lr");
  s.momentum = c.real("optim.momentum");
  s.weight_decay = c.real("optim.weight_decay");
  s.lars_eta = c.real("optim.lars_eta");
  s.warmup_epochs = c.real("optim.warmup_epochs");
  s.final_ratio = c.real("optim.final_ratio");
  return s;
}

oracle::OracleSpec oracle_spec(const Config& c) {
  using namespace oracle;
  static constexpr NamedChoice<LabelerKind> kLabelers[] = {
      {"labels", LabelerKind::labels}, {"pairs", LabelerKind::pairs}, {"exchange", LabelerKind::exchange}};
  static constexpr NamedChoice<ConsensusKind> kConsensus[] = {{"majority", ConsensusKind::majority},
                                                              {"dawid-skene", ConsensusKind::dawid_skene}};
  static constexpr NamedChoice<WhileWaiting> kWaits[] = {{"continue", WhileWaiting::train},
                                                         {"exit", WhileWaiting::exit}};
  static constexpr NamedChoice<Templates> kTemplates[] = {
      {"auto", Templates::automatic}, {"given", Templates::given}, {"discover", Templates::discover}};
  static constexpr NamedChoice<Center> kCenters[] = {
      {"off", Center::off}, {"embeddings", Center::embeddings}, {"input", Center::input}};
  static constexpr NamedChoice<Uncertainty> kMeasures[] = {
      {"entropy", Uncertainty::entropy}, {"margin", Uncertainty::margin}, {"boundary", Uncertainty::boundary}};
  OracleSpec s;
  s.sampler = c.text("oracle.sampler");
  s.mix = c.text_list("oracle.mix");
  s.labeler = choice(c, "oracle.labeler", kLabelers);
  s.pairs = text_or_empty(c, "oracle.pairs");
  s.votes = c.integer("oracle.votes");
  s.consensus = choice(c, "oracle.consensus", kConsensus);
  s.repeats = c.integer("oracle.repeats");
  s.annotators = c.integer("oracle.annotators");
  s.noise = c.real("oracle.noise");
  s.annotator_noise = c.real_list("oracle.annotator_noise");
  s.cost_pair = c.real("oracle.cost_pair");
  s.cost_grid = c.real("oracle.cost_grid");
  s.cost_coarse = c.real("oracle.cost_coarse");
  s.wait = choice(c, "oracle.wait", kWaits);
  s.every = c.integer("oracle.every");
  s.questions_per_round = c.integer("oracle.questions_per_round");
  s.pool = c.integer("oracle.pool");
  s.limits = {.questions = c.integer("oracle.budget"),
              .cost = c.real("oracle.budget_cost"),
              .hours = c.real("oracle.budget_hours"),
              .plateau = c.integer("oracle.plateau"),
              .gain = c.real("oracle.plateau_gain"),
              .agreement = c.real("oracle.agreement")};
  s.seed = seed_of(c);
  s.members = c.integer("oracle.members");
  s.templates = choice(c, "oracle.templates", kTemplates);
  s.class_guess = choice(c, "oracle.class_guess", kGuides);
  s.center = choice(c, "oracle.center", kCenters);
  s.priors = c.real_list("oracle.priors");
  s.outliers = c.integer("oracle.outliers");
  s.measure = choice(c, "oracle.measure", kMeasures);
  s.heads = c.integer("oracle.heads");
  s.clusters = c.integer("oracle.clusters");
  s.pruning_near_until = c.real("oracle.pruning_near_until");
  s.support = c.integer("oracle.support");
  s.neighbors = c.integer("oracle.neighbors");
  s.coarse_accuracy = c.real("oracle.coarse_accuracy");
  return s;
}

TrainSpec train_spec(const Config& c) {
  using model::Precision;
  static constexpr NamedChoice<ViewPasses> kPasses[] = {{"joint", ViewPasses::joint},
                                                        {"separate", ViewPasses::separate}};
  static constexpr NamedChoice<Precision> kPrecisions[] = {{"full", Precision::full}, {"bf16", Precision::bf16}};
  static constexpr NamedChoice<GradDtype> kGradDtypes[] = {{"full", GradDtype::full},
                                                           {"bfloat16", GradDtype::bfloat16}};
  static constexpr NamedChoice<bool> kSwitch[] = {{"on", true}, {"off", false}};
  TrainSpec s;
  s.global_batch = c.integer("train.global_batch");
  s.steps = integer_if_set(c, "train.steps");
  s.epochs = integer_if_set(c, "train.epochs");
  s.seed = seed_of(c);
  s.device = choice(c, "train.device", kDevices);
  s.dtype = dtype_of(c);
  s.views = choice(c, "train.views", kPasses);
  s.micro_batches = c.integer("train.micro_batches");
  s.precision = choice(c, "train.precision", kPrecisions);
  s.deterministic = choice(c, "train.deterministic", kSwitch);
  s.bucket_mb = c.real("train.bucket_mb");
  s.grad_dtype = choice(c, "train.grad_dtype", kGradDtypes);
  s.threads = small_integer(c, "train.threads");
  s.max_skips = c.integer("train.max_skips");
  s.compare_every = c.integer("train.compare_every");
  s.watchdog = choice(c, "train.watchdog", kSwitch);
  s.start_seconds = c.real("train.start_seconds");
  s.heartbeat_seconds = c.real("train.heartbeat_seconds");
  s.stall_seconds = c.real("train.stall_seconds");
  s.hang_seconds = c.real("train.hang_seconds");
  return s;
}

CompareSpec compare_spec(const Config& c) {
  CompareSpec s;
  s.lines = c.text_list("compare.lines");
  s.seeds = c.integer("compare.seeds");
  s.noise = c.real_list("compare.noise");
  s.points = c.integer("compare.points");
  s.pca = c.integer("compare.pca");
  s.width = c.integer("compare.width");
  return s;
}

}  // namespace

label::LabelSpec label_spec(const Config& c) {
  std::string instructions;
  for (const std::string& line : c.text_list("label.instructions"))
    instructions += (instructions.empty() ? "" : "\n") + line;
  return {text_or_empty(c, "label.question"), instructions, c.flag("label.class_names")};
}

RunSpec make_run_spec(const Config& c) {
  return {
      .data = data_spec(c),
      .augment = augment_spec(c),
      .model = model_settings(c),
      .graph = graph_settings(c),
      .loss = loss_spec(c),
      .optim = optim_spec(c),
      .oracle = oracle_spec(c),
      .train = train_spec(c),
      .eval = {c.integer("eval.every"), c.integer("eval.train_samples"), c.integer("eval.test_samples")},
      .checkpoint = {c.integer("checkpoint.every"), small_integer(c, "checkpoint.keep"),
                     static_cast<float>(c.real("checkpoint.minutes"))},
      .log = {c.integer("log.every")},
      .compare = compare_spec(c),
      .config = c,
  };
}

}  // namespace pal::setup
