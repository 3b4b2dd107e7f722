#include "dist/trainer.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/data/policy.h"
#include "core/eval/effective_rank.h"
#include "core/eval/embed.h"
#include "core/io/checkpoint.h"
#include "core/io/sha256.h"
#include "core/model/batch_norm.h"
#include "core/model/state.h"
#include "core/setup.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"

namespace pal {

Trainer::Trainer(const Config& config, World& world, const std::string& run_dir, Resume resume)
    : config_(config),
      world_(world),
      threads_(compute_threads(config, world.local_size())),
      folder_(world.rank() == 0 ? std::make_unique<RunFolder>(run_dir, config, resume) : nullptr),
      run_dir_(run_dir),
      data_(Dataset::open(config.text("data.train"))),
      subset_(training_subset(config, *data_)),
      augment_(augment_options(config, *data_)),
      store_(data_->size()) {
  at::set_num_threads(threads_);
  const std::vector<int64_t> labels = known_labels(config_, *data_, subset_);
  const auto trained = static_cast<int64_t>(subset_.size());
  labelled_ = std::count_if(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
  edge_samples_ = edge_samples(config_, labelled_, trained);
  epoch_plan_ = {trained, config_.integer("train.global_batch") - edge_samples_, static_cast<uint64_t>(config_.integer("train.seed"))};
  schedule_ = schedule(config_, epoch_plan_.steps_per_epoch());
  const int64_t smallest = epoch_plan_.samples / epoch_plan_.steps_per_epoch();
  PAL_CHECK(world.size() <= smallest, fmt::format("{} ranks share batches of {} samples; ranks", world.size(), smallest), world.size(),
            "start at most as many ranks as samples in a batch");
  compare_ranks();

  store_.set_labels(labels);
  encoder_ = make_encoder(model_spec(config_), config_.text("model.batch_norm") == "node" ? world_.node() : world_.now());
  encoder_->train();
  criterion_ = make_criterion(config_);
  grads_ = std::make_unique<GradSync>(trainable(*encoder_), world_.bulk());
  optimizer_ = make_optimizer(optim_spec(config_), trainable(*encoder_));
  resume_from_checkpoint();
  if (config_.text("oracle.sampler") != "none") {
    rounds_ = std::make_unique<QueryRounds>(config_, world_.control(), store_, AskedOf{subset_, data_->labels()},
                                            LedgerOf{run_dir_ + "/ledger.sqlite", run_id()}, step_);
  }
  LoaderOptions load;
  load.plan = epoch_plan_;
  load.edge_samples = edge_samples_;
  load.subset = subset_;
  load.views = view_policies(config_);
  load.augment = augment_;
  load.dtype = scalar_type(config_);
  load.rank = world_.rank();
  load.ranks = world_.size();
  load.threads = static_cast<int>(config_.integer("data.threads"));
  load.depth = static_cast<int>(config_.integer("data.prefetch"));
  load.first_step = load.planned_until = planned_until_ = step_;
  loader_ = std::make_unique<Loader>(data_, load);
  if (world_.rank() == 0 && !done()) metrics_ = std::make_unique<MetricsWriter>(run_dir_ + "/metrics.jsonl", step_);
}

Trainer::~Trainer() = default;

StepReport Trainer::step() {
  const auto start = std::chrono::steady_clock::now();
  StepReport report;
  report.step = step_;
  report.lr = schedule_.at(step_);

  // 1. Plan: answers that take effect now, then this step's global batch, the same on every rank.
  if (rounds_) rounds_->at_boundary(step_, embed_pool());
  plan_ahead();
  // 2. Read and 3. augment: done ahead by the loader's threads.
  const LoadedStep loaded = loader_->next();
  const Batch batch = plan(loaded);
  // 4. Encode.
  at::Tensor z = encode(loaded);
  // 5. Loss.
  const LossResult loss = criterion_(z.detach().contiguous(), batch, world_.now());
  report.loss = loss.value;
  report.terms = loss.terms;
  // 6. Backward; gradients are views into the buckets and are summed over ranks.
  grads_->zero();
  z.backward(loss.dz);
  grads_->sum();
  // 7. Guard: the sums are the same on every rank, so all ranks decide alike.
  report.skipped = !std::isfinite(loss.value) || !grads_->finite();
  guard(report);
  // 8. Optimiser.
  if (!report.skipped) optimizer_->step(report.lr);
  ++step_;
  // 9. Log and save.
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report.images_per_s = static_cast<double>(batch.samples.size()) / seconds.count();
  log(report, z.detach());
  if (step_ % config_.integer("checkpoint.every") == 0) save_checkpoint();
  return report;
}

void Trainer::guard(const StepReport& report) {
  if (!report.skipped) {
    commit_batch_norm(*encoder_);
    skips_ = 0;
    return;
  }
  discard_batch_norm(*encoder_);
  ++skips_;
  PAL_CHECK_CODE(Exit::numerics, skips_ < config_.integer("train.max_skips"),
                 fmt::format("the gradient was not finite in {} steps in a row, last at step", skips_), report.step,
                 "lower optim.base_lr or lengthen optim.warmup_epochs; the last checkpoint is unharmed");
}

// The loader may prepare the steps in which the graph stays as it is now: the samples of a batch depend on it.
void Trainer::plan_ahead() {
  if (step_ < planned_until_) return;
  const bool changes = rounds_ && edge_samples_ > 0;
  planned_until_ = changes ? std::min(rounds_->next_change(step_), last_step()) : last_step();
  loader_->plan_on(planned_until_, edge_samples_ > 0 ? std::make_shared<const EdgeDraw>(store_, subset_) : nullptr);
}

Batch Trainer::plan(const LoadedStep& loaded) const {
  Batch batch;
  batch.samples = loaded.samples;
  batch.rank_begin = loaded.rank_begin;
  batch.begin = loaded.rank_begin[world_.rank()];
  batch.end = loaded.rank_begin[world_.rank() + 1];
  batch.views = static_cast<int32_t>(config_.integer("augment.views"));
  batch.graph = build_batch_graph(store_, graph_kind(config_), config_.real("graph.alpha"), batch.samples, batch.views);
  batch.threads = threads_;
  return batch;
}

at::Tensor Trainer::encode(const LoadedStep& loaded) const {
  if (config_.text("train.views") == "joint") return encoder_->forward(loaded.images);
  std::vector<at::Tensor> views;
  for (const at::Tensor& images : loaded.images.chunk(config_.integer("augment.views"))) views.push_back(encoder_->forward(images));
  return at::cat(views);
}

void Trainer::log(const StepReport& report, const at::Tensor& z) {
  if (!metrics_ || (step_ % config_.integer("log.every") != 0 && !done() && !report.skipped)) return;
  StepMetrics m;
  m.step = step_;
  m.epoch = static_cast<double>(step_) / static_cast<double>(epoch_plan_.steps_per_epoch());
  m.loss = report.loss;
  m.terms = report.terms;
  m.lr = report.lr;
  m.images_per_s = report.images_per_s;
  m.graph_version = store_.version();
  m.queries = rounds_ ? rounds_->questions() : 0;
  m.cost = rounds_ ? rounds_->cost() : 0;
  m.effective_rank = effective_rank(z);
  metrics_->write(m);
}

void Trainer::finish() {
  if (saved_step_ != step_) save_checkpoint();
  if (metrics_) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    metrics_->finish(step_, weights_sha256(), seconds.count());
  }
  world_.control().barrier();   // no rank leaves before the last checkpoint stands
}

void Trainer::save_checkpoint() {
  saved_step_ = step_;
  if (world_.rank() != 0) return;
  CheckpointState state;
  state.step = step_;
  state.seed = epoch_plan_.seed;
  state.fingerprint = fingerprint();
  state.graph_version = store_.version();
  write_checkpoint(run_dir_, state, model_state(*encoder_), optimizer_->state(), static_cast<int>(config_.integer("checkpoint.keep")));
}

void Trainer::resume_from_checkpoint() {
  // Rank 0 decides which checkpoint is good; all ranks then read the same one.
  at::Tensor step = at::full({1}, -1, at::kLong);
  std::optional<LoadedCheckpoint> loaded;
  if (world_.rank() == 0) {
    loaded = load_newest_checkpoint(run_dir_, [&](const std::string& w) { warnings.push_back(w); });
    if (loaded) step.fill_(loaded->state.step);
  }
  world_.control().broadcast(step, 0);
  if (step.item<int64_t>() < 0) return;
  if (world_.rank() == 0) {
    restore(model_state(*encoder_), loaded->model, loaded->path + "/model.safetensors");
    restore(optimizer_->state(), loaded->optim, loaded->path + "/optim.safetensors");
    if (loaded->state.fingerprint != fingerprint()) {
      warnings.push_back("resumed with other ranks, threads or instructions (" + loaded->state.fingerprint + " before, " +
                         fingerprint() + " now): the run goes on, but not bit for bit");
    }
  }
  const at::NoGradGuard no_grad;
  const auto share = [this](const NamedTensors& tensors) {
    for (const auto& named : tensors) {
      at::Tensor mine = named.second;
      const at::Tensor dense = mine.contiguous();  // convolutions lie channels-last, a Comm carries what is contiguous
      world_.control().broadcast(dense, 0);
      if (!dense.is_same(mine)) mine.copy_(dense);
    }
  };
  share(model_state(*encoder_));
  share(optimizer_->state());
  step_ = saved_step_ = step.item<int64_t>();
}

std::string Trainer::weights_sha256() const {
  std::string all;
  for (const auto& [name, t] : model_state(*encoder_)) {
    const at::Tensor c = t.contiguous();
    all += name + " " + sha256_hex(c.data_ptr(), c.nbytes()) + "\n";
  }
  return sha256_hex(all.data(), all.size());
}

std::string Trainer::fingerprint() const {
  return fmt::format("ranks={} threads={} isa={} dtype={}", world_.size(), threads_, kernels::isa_name(kernels::best_isa()), config_.text("train.dtype"));
}

// What the ledger belongs to: the questions depend on these, not on ranks or threads.
std::string Trainer::run_id() const {
  return fmt::format("data={:016x} seed={} sampler={}", data_->fingerprint(), epoch_plan_.seed, config_.text("oracle.sampler"));
}

void Trainer::compare_ranks() const {
  const auto same = [&](uint64_t value, const std::string& what) {
    at::Tensor low = at::full({1}, static_cast<int64_t>(value), at::kLong), high = low.clone();
    world_.control().all_reduce(low, ReduceOp::min);
    world_.control().all_reduce(high, ReduceOp::max);
    PAL_CHECK(low.item<int64_t>() == high.item<int64_t>(), "the ranks do not agree on " + what, "this rank's fingerprint " + std::to_string(value),
              "start every rank with the same files and arguments");
  };
  same(std::hash<std::string>{}(config_.dump()), "the config");
  same(data_->fingerprint(), "the training set " + config_.text("data.train"));
}

QueryRounds::EmbedPool Trainer::embed_pool() {
  return [this](const std::vector<int64_t>& samples) {
    EmbedOptions options;
    options.what = EmbedWhat::embedding;
    options.augment = augment_;
    options.dtype = scalar_type(config_);
    options.threads = threads_;
    return embed(*encoder_, *data_, samples, options, world_.now());
  };
}

std::vector<std::pair<std::string, std::string>> Trainer::summary() const {
  int64_t parameters = 0;
  for (const auto& p : encoder_->parameters()) parameters += p.numel();
  return {
      {"data", fmt::format("{}, {} of {} samples", config_.text("data.train"), subset_.size(), data_->size())},
      {"model", fmt::format("{} + projector, {:.2f} M parameters", config_.text("model.backbone"), static_cast<double>(parameters) / 1e6)},
      {"graph", fmt::format("{}, {} labels known", config_.text("graph.kind"), labelled_)},
      {"loss", config_.text("loss.kind")},
      {"steps", fmt::format("{} of {} samples, {} per epoch", schedule_.total_steps, epoch_plan_.global_batch, epoch_plan_.steps_per_epoch()) +
                    (edge_samples_ > 0 ? fmt::format(", and up to {} of which relations are known", edge_samples_) : "")},
      {"learning rate", fmt::format("{:g} peak, {}, {} warm-up steps", schedule_.peak, config_.text("optim.kind"), schedule_.warmup_steps)},
      {"ranks", fmt::format("{} × {} thread{} on the CPU, {}", world_.size(), threads_, threads_ == 1 ? "" : "s", kernels::isa_name(kernels::best_isa()))},
      {"run folder", run_dir_},
  };
}

}  // namespace pal
