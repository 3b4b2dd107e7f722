// trainer_setup: the start of a run: what it trains, on which graph, from which step; parts in the order of need.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/data/loader/augment_spec.h"
#include "core/data/node_cache.h"
#include "core/eval/embed.h"
#include "core/loss/objective.h"
#include "core/model/encoder.h"
#include "core/model/init_weights.h"
#include "core/model/state.h"
#include "core/oracle/round/round.h"
#include "core/record/run_info.h"
#include "core/setup/setup.h"
#include "dist/health/consistency.h"
#include "dist/train/resume.h"
#include "dist/train/run_observers.h"
#include "dist/train/step_sync.h"
#include "dist/train/trainer.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

std::string training_file(const data::DataSpec& spec, World& world) {
  return spec.stage.empty() ? spec.train : data::cache_on_node(spec.train, spec.stage, world.node()).data;
}

data::EpochSpec epoch_plan(const setup::RunSpec& spec, int64_t trained, int64_t edge_samples) {
  return {trained, spec.train.global_batch - edge_samples, spec.train.seed, spec.data.shuffle, spec.data.window};
}

void check_smallest_batch(const data::EpochSpec& plan, int ranks, int64_t pieces) {
  const int64_t smallest = plan.samples / plan.steps_per_epoch();
  PAL_CHECK(pieces == 1 || ranks * pieces <= smallest,
            fmt::format("batches of {} samples on {} ranks are too small for train.micro_batches", smallest, ranks),
            pieces, "use fewer micro-batches or a larger train.global_batch");
  PAL_CHECK(ranks <= smallest, fmt::format("{} ranks cannot share batches of {} samples", ranks, smallest), "",
            "start at most as many ranks as samples in a batch");
}

GradSyncOptions grad_sync_options(const setup::TrainSpec& spec) {
  return {static_cast<int64_t>(spec.bucket_mb * (1 << 20)), spec.grad_dtype};
}

}  // namespace

Trainer::Trainer(const setup::RunSpec& spec, World& world, const std::string& run_dir, const Beginning& beginning,
                 RunControl control)
    : run_(spec),
      world_(world),
      control_(std::move(control)),
      threads_(setup::compute_threads(spec.train, world.cores())),
      device_(control_.device),
      folder_(world.rank() == 0 ? std::make_unique<RunFolder>(run_dir, spec.config, beginning.resume) : nullptr),
      run_dir_(run_dir),
      data_(data::Dataset::open(training_file(spec.data, world))),
      subset_(setup::training_subset(spec, *data_)),
      augment_(data::augment_options(spec.augment, *data_)),
      store_(data_->size()) {
  at::set_num_threads(threads_);
  const std::vector<int64_t> labels = setup::known_labels(run_, *data_, subset_);
  const auto trained = static_cast<int64_t>(subset_.size());
  setup::check_batch(run_, trained);
  const std::vector<int64_t> groups = setup::known_groups(run_, *data_, subset_);
  const auto known = [](const std::vector<int64_t>& of) {
    return std::count_if(of.begin(), of.end(), [](int64_t label) { return label >= 0; });
  };
  labeled_ = known(labels) + known(groups);
  store_ = setup::make_graph_store(run_.graph, *data_, labels, groups);
  edge_samples_ = setup::edge_samples(run_, labeled_, trained, graph::EdgeDraw(store_, subset_));
  epoch_ = epoch_plan(run_, trained, edge_samples_);
  schedule_ = setup::schedule(run_, epoch_.steps_per_epoch());
  oracle_ = setup::checked_oracle(run_, *data_, known(labels));
  check_smallest_batch(epoch_, world_.size(), run_.train.micro_batches);
  check_same_data(data_->fingerprint(), "the training set " + run_.data.train, world_.control());
  check_same_folder(run_dir_, world_.control());
  graph_spec_ = setup::graph_spec(run_.graph, *data_);
  check_same_data(store_.fingerprint(), "the graph before the first step", world_.control());
  open_model();
  begin(beginning.origin);
  online_ = setup::make_online_eval(run_, data_, subset_, threads_);
  open_rounds();
  count_partners();
  open_loader();
  open_checkpoints();
  if (folder_) folder_->keep_config();
  if (step_ > 0 && saved_step_ != step_) save_checkpoint();  // another run's: the folder has its own from now on
  open_metrics();
  add_observers();
}

Trainer::~Trainer() = default;

void Trainer::open_model() {
  encoder_ = model::make_encoder(
      setup::model_spec(run_), run_.model.batch_norm == model::BatchNormScope::node ? world_.node() : world_.compute());
  encoder_->to(device_);
  encoder_->train();
  objective_ = std::make_unique<loss::Objective>(run_.loss, encoder_->embedding_dims());
  grads_ = std::make_unique<GradSync>(model::trainable(*encoder_), world_.gradients(), grad_sync_options(run_.train));
  optimizer_ = optim::make_optimizer(run_.optim, model::trainable(*encoder_));
}

// The state that a checkpoint holds, or the weights of model.init.
void Trainer::begin(const std::optional<Origin>& origin) {
  Resumed resumed = resume({run_, run_dir_, origin, last_step(), fingerprint()}, checkpointed(), world_.control());
  step_ = trained_ = resumed.step;
  PAL_CHECK(step_ <= last_step(),
            fmt::format("the run in {} has more steps than the {} of this config", run_dir_, last_step()), step_,
            "raise train.steps or train.epochs");
  if (resumed.from == ResumedFrom::own) saved_step_ = step_;
  warnings = std::move(resumed.warnings);
  if (const std::string sentence = setup::collapse_warning(run_); !sentence.empty() && step_ == 0)
    warnings.push_back(sentence);
  if (step_ == 0 && !run_.model.init.empty())
    begins_with_ = run_.model.init + ": " + model::init_text(model::init_backbone(*encoder_, run_.model.init));
}

void Trainer::open_rounds() {
  if (!oracle_.asks()) return;
  if (const std::string sentence = setup::too_short_to_ask(oracle_, last_step()); !sentence.empty() && !done())
    warnings.push_back(sentence);
  const QuestionContext of{
      subset_,
      data_->labels(),
      data_->parents(),
      [this](int64_t sample) { return data_->id(sample); },
      [this](const std::vector<int64_t>& samples) { return eval::inputs(*data_, samples, run_.augment, threads_); },
      [this](int64_t step) {
        if (control_.faults) control_.faults->before_round(step);
      }};
  const LedgerLocation ledger{run_dir_ + "/ledger.sqlite", oracle::ledger_run(run_.oracle, data_->fingerprint())};
  rounds_ = std::make_unique<QueryRounds>(oracle_, world_, store_, of, ledger, step_);
  for (std::string& sentence : rounds_->refused_at_start()) warnings.push_back(std::move(sentence));
  stopping_ = rounds_->leaves();
}

// A graph whose related samples seldom meet in a batch trains as the ssl graph: the user reads how many do.
void Trainer::count_partners() {
  constexpr double kFew = 0.05;
  const bool features = graph_spec_.targets != nullptr;  // relates all samples, more or less
  if (world_.rank() != 0 || done() || features || !setup::relates_samples(run_)) return;
  partners_ = measure_partners();
  const bool answers_first = run_.oracle.asks() && run_.graph.labeled_fraction == 0 && run_.graph.groups.empty();
  if (partners_ < kFew && !answers_first && (labeled_ > 0 || !store_.edges().empty()) &&
      run_.graph.kind != graph::GraphKind::table)
    warnings.push_back(
        fmt::format("{:.1f} % of a batch's rows have a related sample in the batch; raise graph.edge_share, which is "
                    "{:g}, or train.global_batch",
                    100 * partners_, run_.graph.edge_share));
}

double Trainer::measure_partners() const {
  constexpr int64_t kBatches = 8;
  const graph::EdgeDraw draw(store_, subset_);
  double share = 0;
  for (int64_t step = step_; step < step_ + kBatches; ++step) {
    std::vector<int64_t> samples = data::batch_samples(epoch_, subset_, step);
    draw.add_to(samples, edge_samples_, epoch_.seed, step);
    const graph::BatchGraph graph = graph::build_batch_graph(store_, graph_spec_, samples, 1);
    share += graph::count_pairs(graph).partnered / static_cast<double>(samples.size() * kBatches);
  }
  return share;
}

void Trainer::open_loader() {
  data::LoaderOptions load;
  load.plan = epoch_;
  load.edge_samples = edge_samples_;
  load.subset = subset_;
  load.views = data::view_set(run_.augment, *data_);
  load.dtype = run_.train.dtype;
  load.rank = world_.rank();
  load.ranks = world_.size();
  load.local_rank = world_.node().rank();
  load.local_ranks = world_.local_size();
  load.threads = run_.data.threads;
  load.readers = run_.data.readers;
  load.depth = run_.data.prefetch;
  load.memory_mb = run_.data.memory_mb;
  load.first_step = load.planned_until = planned_until_ = step_;
  data::render_on(device_, *data_, load);
  if (run_.data.decoder == data::Decoder::nvjpeg) {
    PAL_CHECK(data_->encoding() == data::Encoding::jpeg,
              "data.decoder=nvjpeg needs a data set of JPEG files, and this one is not", run_.data.train,
              "set data.decoder=cpu");
    load.decoder = data::make_nvjpeg_decoder(device_.index());
  }
  loader_ = std::make_unique<data::Loader>(data_, load);
}

void Trainer::open_checkpoints() {
  CheckpointerOptions options;
  options.run_dir = run_dir_;
  options.keep = run_.checkpoint.keep;
  options.threads = threads_;
  options.warn = [this](const std::string& sentence) { warn(sentence); };
  if (control_.faults) options.before_write = [this](int64_t step) { control_.faults->before_write(step); };
  checkpoints_ = std::make_unique<Checkpointer>(std::move(options), world_.control(), checkpointed());
  const double most = 60 * run_.checkpoint.minutes;
  step_sync_ = std::make_unique<StepSync>(world_.control(), control_.stop_asked, [this, most] {
    return world_.rank() == 0 && most > 0 && seconds_since(saved_at_) >= most;
  });
}

void Trainer::open_metrics() {
  if (world_.rank() != 0 || done()) return;
  metrics_ = std::make_unique<record::MetricsWriter>(run_dir_ + "/metrics.jsonl", step_);
  record::add_run_info(run_dir_, record::this_machine(fmt::format("{} x {} threads", world_.size(), threads_)));
}

// The order of what happens around a step, the same on every rank.
void Trainer::add_observers() {
  const auto add = [this](std::unique_ptr<StepObserver> observer) { observers_.push_back(std::move(observer)); };
  if (control_.faults) add(std::make_unique<FaultObserver>(*control_.faults, *encoder_));
  add(std::make_unique<StepMetrics>(MetricsSources{
      .spec = run_,
      .world = world_,
      .encoder = *encoder_,
      .store = store_,
      .grads = *grads_,
      .loader = *loader_,
      .rounds = rounds_.get(),
      .online = online_.get(),
      .writer = metrics_.get(),
      .watchdog = control_.watchdog,
      .steps_per_epoch = epoch_.steps_per_epoch(),
      .last_step = last_step(),
      .start = start_,
      .share_statistics = [this] { share_statistics(); },
      .warn = [this](const std::string& sentence) { warn(sentence); },
  }));
  add(std::make_unique<ParameterObserver>(*encoder_, world_.control(), run_.train.compare_every));
  add(std::make_unique<CheckpointObserver>(run_.checkpoint.every, [this] {
    if (trained_ > 0) save_checkpoint();
  }));
  add(std::make_unique<SyncObserver>([this](const FinishedStep& done) { sync_ranks(done); }));
  if (control_.watchdog) add(std::make_unique<WatchdogObserver>(*control_.watchdog));
}

}  // namespace pal::dist
