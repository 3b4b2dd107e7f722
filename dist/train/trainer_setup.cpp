// trainer_setup: the start of a run: what it trains, on which graph, from which step; in the order in which the parts need each other.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/data/loader/augment_config.h"
#include "core/data/node_cache.h"
#include "core/eval/embed.h"
#include "core/model/encoder.h"
#include "core/model/init_weights.h"
#include "core/model/state.h"
#include "core/record/run_info.h"
#include "core/setup/setup.h"
#include "dist/health/consistency.h"
#include "dist/train/resume.h"
#include "dist/train/trainer.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

std::string training_file(const config::Config& config, World& world) {
  const std::string& file = config.text("data.train");
  return config.has("data.stage") ? data::cache_on_node(file, config.text("data.stage"), world.node()).data : file;
}

data::EpochSpec epoch_plan(const config::Config& config, int64_t trained, int64_t edge_samples) {
  return {trained, config.integer("train.global_batch") - edge_samples,
          static_cast<uint64_t>(config.integer("train.seed")),
          config.text("data.shuffle") == "windows" ? data::Shuffle::windows : data::Shuffle::full,
          config.integer("data.window")};
}

void check_smallest_batch(const data::EpochSpec& plan, int ranks, int64_t pieces) {
  const int64_t smallest = plan.samples / plan.steps_per_epoch();
  PAL_CHECK(pieces == 1 || ranks * pieces <= smallest,
            fmt::format("batches of {} samples on {} ranks are too small for train.micro_batches", smallest, ranks),
            pieces, "use fewer micro-batches or a larger train.global_batch");
  PAL_CHECK(ranks <= smallest, fmt::format("{} ranks share batches of {} samples; ranks", ranks, smallest), ranks,
            "start at most as many ranks as samples in a batch");
}

GradSyncOptions grad_sync_options(const config::Config& config) {
  return {static_cast<int64_t>(config.real("train.bucket_mb") * (1 << 20)),
          config.text("train.grad_dtype") == "bfloat16" ? GradDtype::bfloat16 : GradDtype::full};
}

}  // namespace

Trainer::Trainer(const config::Config& config, World& world, const std::string& run_dir, const Beginning& beginning,
                 RunControl control)
    : config_(config),
      world_(world),
      control_(std::move(control)),
      threads_(setup::compute_threads(config, world.cores())),
      device_(control_.device),
      folder_(world.rank() == 0 ? std::make_unique<RunFolder>(run_dir, config, beginning.resume) : nullptr),
      run_dir_(run_dir),
      data_(data::Dataset::open(training_file(config, world))),
      subset_(setup::training_subset(config, *data_)),
      augment_(data::augment_options(config, *data_)),
      store_(data_->size()) {
  at::set_num_threads(threads_);
  const std::vector<int64_t> labels = setup::known_labels(config_, *data_, subset_);
  const auto trained = static_cast<int64_t>(subset_.size());
  labeled_ = std::count_if(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
  edge_samples_ = setup::edge_samples(config_, labeled_, trained);
  epoch_ = epoch_plan(config_, trained, edge_samples_);
  schedule_ = setup::schedule(config_, epoch_.steps_per_epoch());
  check_smallest_batch(epoch_, world_.size(), config_.integer("train.micro_batches"));
  check_same_data(data_->fingerprint(), "the training set " + config_.text("data.train"), world_.control());
  check_same_folder(run_dir_, world_.control());
  spec_ = setup::graph_spec(config_, *data_);
  store_ = setup::make_graph_store(config_, *data_, labels);
  check_same_data(store_.fingerprint(), "the graph before the first step", world_.control());
  open_model();
  begin(beginning.origin);
  online_ = setup::make_online_eval(config_, data_, subset_, threads_);
  open_rounds();
  open_loader();
  open_checkpoints();
  if (step_ > 0 && saved_step_ != step_) save_checkpoint();  // another run's: the folder has its own from now on
  if (world_.rank() == 0 && !done()) {
    metrics_ = std::make_unique<record::MetricsWriter>(run_dir_ + "/metrics.jsonl", step_);
    record::add_run_info(run_dir_, record::this_machine(fmt::format("{} x {} threads", world_.size(), threads_)));
  }
}

Trainer::~Trainer() = default;

void Trainer::open_model() {
  encoder_ = model::make_encoder(setup::model_spec(config_),
                                 config_.text("model.batch_norm") == "node" ? world_.node() : world_.compute());
  encoder_->to(device_);
  encoder_->train();
  objective_ = std::make_unique<loss::Objective>(config_, encoder_->embedding_dims());
  grads_ = std::make_unique<GradSync>(model::trainable(*encoder_), world_.gradients(), grad_sync_options(config_));
  optimizer_ = optim::make_optimizer(setup::optim_spec(config_), model::trainable(*encoder_));
}

// The state that a checkpoint holds, or the weights of model.init.
void Trainer::begin(const std::optional<Origin>& origin) {
  Resumed resumed = resume({config_, run_dir_, origin, last_step(), fingerprint()}, checkpointed(), world_.control());
  step_ = resumed.step;
  if (resumed.from == ResumedFrom::own) saved_step_ = step_;
  warnings = std::move(resumed.warnings);
  if (step_ == 0 && config_.has("model.init"))
    begins_with_ = config_.text("model.init") + ": " +
                   model::init_text(model::init_backbone(*encoder_, config_.text("model.init")));
}

void Trainer::open_rounds() {
  if (config_.text("oracle.sampler") == "none") return;
  const QuestionContext of{subset_,
                           data_->labels(),
                           data_->parents(),
                           [this](int64_t sample) { return data_->id(sample); },
                           [this](const std::vector<int64_t>& samples) { return eval::pixels(*data_, samples); },
                           [this](int64_t step) {
                             if (control_.faults) control_.faults->before_round(step);
                           }};
  const LedgerLocation ledger{run_dir_ + "/ledger.sqlite", ledger_run(config_, data_->fingerprint())};
  rounds_ = std::make_unique<QueryRounds>(config_, world_, store_, of, ledger, step_);
  stopping_ = rounds_->leaves();
}

void Trainer::open_loader() {
  data::LoaderOptions load;
  load.plan = epoch_;
  load.edge_samples = edge_samples_;
  load.subset = subset_;
  load.views = data::view_set(config_, *data_);
  load.dtype = setup::scalar_type(config_);
  load.rank = world_.rank();
  load.ranks = world_.size();
  load.local_rank = world_.node().rank();
  load.local_ranks = world_.local_size();
  load.threads = static_cast<int>(config_.integer("data.threads"));
  load.readers = static_cast<int>(config_.integer("data.readers"));
  load.depth = static_cast<int>(config_.integer("data.prefetch"));
  load.memory_mb = config_.integer("data.memory_mb");
  load.first_step = load.planned_until = planned_until_ = step_;
  // Views in fp64 and rows of features are made by the workers.
  if (!device_.is_cpu() && load.dtype == at::kFloat && data_->encoding() != data::Encoding::features) {
    load.render = data::Render::device;
    load.device = device_;
  }
  if (config_.text("data.decoder") == "nvjpeg") {
    PAL_CHECK(data_->encoding() == data::Encoding::jpeg,
              "data.decoder=nvjpeg needs a data set of JPEG files, and this one is not", config_.text("data.train"),
              "take data.decoder=cpu");
    load.decoder = data::make_nvjpeg_decoder(device_.index());
  }
  loader_ = std::make_unique<data::Loader>(data_, load);
}

void Trainer::open_checkpoints() {
  CheckpointerOptions options;
  options.run_dir = run_dir_;
  options.keep = static_cast<int>(config_.integer("checkpoint.keep"));
  options.threads = threads_;
  options.warn = [this](const std::string& sentence) { warn(sentence); };
  if (control_.faults) options.before_write = [this](int64_t step) { control_.faults->before_write(step); };
  checkpoints_ = std::make_unique<Checkpointer>(std::move(options), world_.control(), checkpointed());
  step_sync_ = std::make_unique<StepSync>(world_.control(), control_.stop_asked);
}

}  // namespace pal::dist
