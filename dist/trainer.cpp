#include "dist/trainer.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "core/counting_comm.h"
#include "core/data/policy.h"
#include "core/data/stage.h"
#include "core/eval/embed.h"
#include "core/io/checkpoint.h"
#include "core/io/run_info.h"
#include "core/io/sha256.h"
#include "core/model/autocast.h"
#include "core/model/batch_norm.h"
#include "core/model/init_weights.h"
#include "core/model/state.h"
#include "core/setup.h"
#include "dist/agreement.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"

namespace pal {
namespace {

GradSyncOptions grad_sync_options(const Config& config) {
  return {static_cast<int64_t>(config.real("train.bucket_mb") * (1 << 20)),
          config.text("train.wire") == "bfloat16" ? Wire::bfloat16 : Wire::full};
}

}  // namespace

Trainer::Trainer(const Config& config, World& world, const std::string& run_dir, const Beginning& beginning, RunControl control)
    : config_(config),
      world_(world),
      control_(std::move(control)),
      threads_(compute_threads(config, world.cores())),
      device_(control_.device),
      folder_(world.rank() == 0 ? std::make_unique<RunFolder>(run_dir, config, beginning.resume) : nullptr),
      run_dir_(run_dir),
      data_(Dataset::open(config.has("data.stage") ? stage_dataset(config.text("data.train"), config.text("data.stage"), world.node()).data
                                                  : config.text("data.train"))),
      subset_(training_subset(config, *data_)),
      augment_(augment_options(config, *data_)),
      store_(data_->size()) {
  at::set_num_threads(threads_);
  const std::vector<int64_t> labels = known_labels(config_, *data_, subset_);
  const auto trained = static_cast<int64_t>(subset_.size());
  labelled_ = std::count_if(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
  edge_samples_ = edge_samples(config_, labelled_, trained);
  epoch_plan_ = {trained, config_.integer("train.global_batch") - edge_samples_, static_cast<uint64_t>(config_.integer("train.seed")),
                 config_.text("data.shuffle") == "windows" ? Shuffle::windows : Shuffle::full, config_.integer("data.window")};
  schedule_ = schedule(config_, epoch_plan_.steps_per_epoch());
  const int64_t smallest = epoch_plan_.samples / epoch_plan_.steps_per_epoch();
  const int64_t pieces = config_.integer("train.micro_batches");
  PAL_CHECK(pieces == 1 || world.size() * pieces <= smallest, fmt::format("batches of {} samples on {} ranks are too small for train.micro_batches", smallest, world.size()),
            pieces, "use fewer micro-batches or a larger train.global_batch");
  PAL_CHECK(world.size() <= smallest, fmt::format("{} ranks share batches of {} samples; ranks", world.size(), smallest), world.size(),
            "start at most as many ranks as samples in a batch");
  agree_on_program(world_.control());
  agree_on_config(config_, world_.control());
  agree_on_data(data_->fingerprint(), "the training set " + config_.text("data.train"), world_.control());
  agree_on_folder(run_dir_, world_.control());
  spec_ = graph_spec(config_, *data_);
  store_ = make_graph_store(config_, *data_, labels);
  agree_on_data(store_.fingerprint(), "the graph before the first step", world_.control());
  encoder_ = make_encoder(model_spec(config_), config_.text("model.batch_norm") == "node" ? world_.node() : world_.now());
  encoder_->to(device_);
  encoder_->train();
  objective_ = std::make_unique<Objective>(config_, encoder_->embedding_dims());
  grads_ = std::make_unique<GradSync>(trainable(*encoder_), world_.bulk(), grad_sync_options(config_));
  optimizer_ = make_optimizer(optim_spec(config_), trainable(*encoder_));
  resume_from_checkpoint(beginning.origin);
  if (step_ == 0 && config_.has("model.init")) init_backbone(*encoder_, config_.text("model.init"));
  online_ = make_online_eval(config_, data_, subset_, threads_);
  if (config_.text("oracle.sampler") != "none") {
    AskedOf of{subset_, data_->labels(), data_->parents(), [this](int64_t sample) { return data_->id(sample); },
               [this](const std::vector<int64_t>& samples) { return pixels(*data_, samples); }};
    rounds_ = std::make_unique<QueryRounds>(config_, world_.control(), store_, of, LedgerOf{run_dir_ + "/ledger.sqlite", ledger_run(config_, data_->fingerprint())}, step_);
    stopping_ = rounds_->leaves();
  }
  LoaderOptions load;
  load.plan = epoch_plan_;
  load.edge_samples = edge_samples_;
  load.subset = subset_;
  load.views = view_set(config_, *data_);
  load.dtype = scalar_type(config_);
  load.rank = world_.rank();
  load.ranks = world_.size();
  load.local_rank = world_.node().rank();
  load.local_ranks = world_.local_size();
  load.threads = static_cast<int>(config_.integer("data.threads"));
  load.readers = static_cast<int>(config_.integer("data.readers"));
  load.depth = static_cast<int>(config_.integer("data.prefetch"));
  load.memory_mb = config_.integer("data.memory_mb");
  load.first_step = load.planned_until = planned_until_ = step_;
  loader_ = std::make_unique<Loader>(data_, load);
  open_checkpoints();
  if (step_ > 0 && saved_step_ != step_) save_checkpoint();   // another run's: the folder has its own from now on
  if (world_.rank() == 0 && !done()) {
    metrics_ = std::make_unique<MetricsWriter>(run_dir_ + "/metrics.jsonl", step_);
    add_run_info(run_dir_, this_machine(fmt::format("{} x {} threads", world_.size(), threads_)));
  }
}

Trainer::~Trainer() = default;

StepReport Trainer::step() {
  const auto start = std::chrono::steady_clock::now();
  StepReport report;
  report.step = step_;
  report.lr = schedule_.at(step_);

  // 1. Plan: answers that take effect now, then this step's global batch, the same on every rank.
  if (control_.faults) control_.faults->before_step(step_, model_state(*encoder_));
  if (rounds_) {
    if (control_.watchdog) control_.watchdog->pace(Pace::slow);
    rounds_->at_boundary(step_, embed_pool());
    report.warning = rounds_->warning();
  }
  if (control_.watchdog) control_.watchdog->pace(Pace::steps);
  plan_ahead();
  // 2. Read and 3. augment: done ahead by the loader's threads.
  const LoadedStep loaded = loader_->next();
  const Batch batch = plan(loaded);
  // 4. Encode, at once or in pieces.
  const auto encode_images = [this](const at::Tensor& images) { return encode(images, config_.integer("augment.views")); };
  const std::optional<MicroBatches> pieces = micro_batches(batch);
  const at::Tensor z = pieces ? pieces->forward(encode_images, loaded.images) : encode(loaded);
  if (pieces) discard_batch_norm(*encoder_);   // the second pass tells
  // 5. Loss.
  CountingComm counted(world_.now());
  LossResult loss = (*objective_)(z.detach().contiguous(), batch, counted);
  report.loss_bytes = counted.bytes();
  report.loss = loss.value;
  report.terms = loss.terms;
  if (control_.faults) control_.faults->poison(loss.dz, step_);
  // 6. Backward; gradients are views into the buckets and are summed over ranks.
  grads_->begin();
  const auto release = [this] { grads_->release(); };
  if (pieces) {
    pieces->backward(encode_images, loaded.images, loss.dz, release);
  } else {
    release();
    z.backward(loss.dz);
  }
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
  log(report, objective_->embedding(z.detach()), batch);
  if (step_ % config_.integer("train.compare_every") == 0) agree_on_parameters(trainable(*encoder_), step_, world_.control());
  if (step_ % config_.integer("checkpoint.every") == 0 && !report.give_up) save_checkpoint();
  stopping_ = boundary_->meet(*checkpoints_) || (rounds_ && rounds_->leaves());
  if (control_.watchdog) control_.watchdog->step_done(step_, seconds.count());
  return report;
}

void Trainer::guard(StepReport& report) {
  if (!report.skipped) {
    commit_batch_norm(*encoder_);
    objective_->commit();
    skips_ = 0;
    return;
  }
  discard_batch_norm(*encoder_);
  objective_->discard();
  report.give_up = ++skips_ >= config_.integer("train.max_skips");
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
  batch.weights = loaded.weights;
  batch.rank_begin = loaded.rank_begin;
  batch.begin = loaded.rank_begin[world_.rank()];
  batch.end = loaded.rank_begin[world_.rank() + 1];
  batch.views = static_cast<int32_t>(total_views(config_));
  batch.graph = build_batch_graph(store_, spec_, batch.samples, batch.views);
  batch.threads = threads_;
  for (int64_t sample : batch.samples) batch.labels.push_back(store_.label(sample));
  objective_->prepare(batch, static_cast<uint64_t>(step_));
  return batch;
}

// One forward for all views of a size, or one each; the one place where images meet the device and its precision.
at::Tensor Trainer::encode(const at::Tensor& images, int64_t views) const {
  const Autocast autocast(config_.text("train.precision") == "bf16" ? Precision::bf16 : Precision::full, device_.type());
  const at::ScalarType type = scalar_type(config_);   // of the loss, whatever the encoder's products were in
  const at::Tensor here = images.to(device_);
  if (config_.text("train.views") == "joint") return encoder_->outputs(here).to(type);
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& view : here.chunk(views)) outputs.push_back(encoder_->outputs(view).to(type));
  return at::cat(outputs);
}

at::Tensor Trainer::encode(const LoadedStep& loaded) const {
  const at::Tensor large = encode(loaded.images, config_.integer("augment.views"));
  if (!loaded.small_images.defined()) return large;
  return at::cat({large, encode(loaded.small_images, config_.integer("augment.small_views"))});
}

std::optional<MicroBatches> Trainer::micro_batches(const Batch& batch) const {
  const int64_t count = config_.integer("train.micro_batches");
  if (count == 1) return std::nullopt;
  return MicroBatches(batch.begin, batch.end, batch.views, count);
}

void Trainer::log(StepReport& report, const at::Tensor& z, const Batch& batch) {
  const bool looks = online_ && !report.skipped && (step_ % config_.integer("eval.every") == 0 || done());
  if (step_ % config_.integer("log.every") != 0 && !done() && !report.skipped && !looks) return;
  const Diagnostics d = diagnose(z, batch, world_.now());
  if (looks && control_.watchdog) control_.watchdog->pace(Pace::slow);
  const auto seen = looks ? online_->look(*encoder_, world_.now()) : std::vector<std::pair<std::string, double>>{};
  if (rounds_ && !seen.empty()) rounds_->saw_figure(step_, seen.front().second);
  if (!metrics_) return;
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
  m.effective_rank = d.effective_rank;
  m.sync_ms = 1000 * grads_->time().seconds;
  m.sync_hidden = grads_->time().hidden();
  m.diagnostics = {{"column_abs_mean", d.mean_abs_mean},     {"column_std", d.mean_std},           {"column_std_min", d.min_std},
                   {"unit_std", d.unit_std},                 {"pairs_positive", d.positive_share}, {"pairs_negative", d.negative_share},
                   {"pairs_unknown", d.unknown_share},       {"loss_bytes", static_cast<double>(report.loss_bytes)}};
  m.diagnostics.insert(m.diagnostics.end(), seen.begin(), seen.end());
  if (!report.skipped) m.warning = collapse_.look(d, z.size(1));
  if (!m.warning.empty()) report.warning += (report.warning.empty() ? "" : "; ") + m.warning;
  try {
    metrics_->write(m);
  } catch (const Error& e) {   // a full disk is no reason to stop
    if (!metrics_fail_) warn(std::string(e.what()) + "; training goes on without its lines");
    metrics_fail_ = true;
  }
}

void Trainer::finish() {
  save_last();
  if (metrics_) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    metrics_->finish(step_, weights_sha256(), seconds.count());
  }
  world_.control().barrier();   // no rank leaves before the last checkpoint stands
}

void Trainer::pause() {
  save_last();
  world_.control().barrier();
}

void Trainer::save_last() {
  if (control_.watchdog) control_.watchdog->pace(Pace::slow);
  if (saved_step_ != step_) save_checkpoint();
  PAL_CHECK(checkpoints_->drain(), "the last checkpoint is not written, of step", step_,
            "the warning above says why; make room and start again, it goes on from the one before");
}

// What a checkpoint holds, by group; "extra" is what the objective keeps between steps (a support queue), the same on every
// rank.
Checkpointer::Groups Trainer::checkpointed() const {
  return {{"model", model_state(*encoder_)}, {"optim", optimizer_->state()}, {"extra", objective_->state()}};
}

void Trainer::warn(const std::string& sentence) const {
  fmt::print(stderr, "{}warning: {}\n", world_.size() > 1 ? world_.prefix() + " " : "", sentence);
}

void Trainer::open_checkpoints() {
  CheckpointerOptions options;
  options.run_dir = run_dir_;
  options.keep = static_cast<int>(config_.integer("checkpoint.keep"));
  options.threads = threads_;
  options.warn = [this](const std::string& sentence) { warn(sentence); };
  if (control_.faults) options.before_write = [this](int64_t step) { control_.faults->before_write(step); };
  checkpoints_ = std::make_unique<Checkpointer>(std::move(options), world_.control(), checkpointed());
  boundary_ = std::make_unique<Boundary>(world_.control(), control_.stop_asked);
}

void Trainer::save_checkpoint() {
  agree_on_parameters(trainable(*encoder_), step_, world_.control());   // what goes wrong later is not saved over what is right
  saved_step_ = step_;
  if (rounds_) rounds_->settle();   // a round asked before this step is in the ledger, or a resumed run would ask another
  CheckpointState state;
  state.step = step_;
  state.seed = epoch_plan_.seed;
  state.fingerprint = fingerprint();
  state.graph_version = store_.version();
  state.ledger_position = rounds_ ? rounds_->questions() : 0;
  checkpoints_->save(state);
}

// Of rank 0: another run's state, for a run folder that has none.
LoadedCheckpoint Trainer::take_over(const Origin& origin) {
  LoadedCheckpoint loaded = load_origin(origin, [&](const std::string& w) { warnings.push_back(w); });
  PAL_CHECK(loaded.state.step < last_step(), fmt::format("the checkpoint of --resume, {}, is not before the last step of this run, {}; its step",
                                                         loaded.path, last_step()),
            loaded.state.step, "give an earlier one, or raise train.steps");
  if (config_.text("oracle.sampler") != "none") adopt_ledger(origin, run_dir_, loaded.state.ledger_position);
  const std::string other = origin.run_dir + "/config.yaml";
  if (origin.run_dir.empty() || !std::filesystem::exists(other)) return loaded;
  const std::vector<std::string> keys = Config::load_resolved(other).differing_keys(config_);
  if (!keys.empty()) warnings.push_back(fmt::format("goes on from {} with other settings: {}", loaded.path, fmt::join(keys, ", ")));
  return loaded;
}

void Trainer::resume_from_checkpoint(const std::optional<Origin>& origin) {
  // Rank 0 decides which checkpoint is good; all ranks then read the same one.
  at::Tensor words = at::full({2}, -1, at::kLong);   // its step; whether it is this run's own
  int64_t* const word = words.data_ptr<int64_t>();
  std::optional<LoadedCheckpoint> loaded;
  if (world_.rank() == 0) {
    loaded = load_newest_checkpoint(run_dir_, [&](const std::string& w) { warnings.push_back(w); });
    word[1] = loaded ? 1 : 0;
    if (!loaded && origin) loaded = take_over(*origin);
    if (loaded) word[0] = loaded->state.step;
  }
  world_.control().broadcast(words, 0);
  if (word[0] < 0) return;
  if (world_.rank() == 0) {
    for (const auto& [group, tensors] : checkpointed()) {
      restore(tensors, group == "model" ? loaded->model : group == "optim" ? loaded->optim : loaded->extra, loaded->path + "/" + group + ".safetensors");
    }
    if (loaded->state.fingerprint != fingerprint()) {
      warnings.push_back("resumed with other ranks, threads or instructions (" + loaded->state.fingerprint + " before, " +
                         fingerprint() + " now): the run goes on, but not bit for bit");
    }
  }
  const at::NoGradGuard no_grad;
  const auto share = [this](const NamedTensors& tensors) {
    for (const auto& named : tensors) {
      at::Tensor mine = named.second;
      const at::Tensor dense = mine.cpu().contiguous();  // convolutions lie channels-last, a Comm carries what is contiguous
      world_.control().broadcast(dense, 0);
      if (!dense.is_same(mine)) mine.copy_(dense);
    }
  };
  for (const auto& [group, tensors] : checkpointed()) share(tensors);
  step_ = word[0];
  if (word[1] == 1) saved_step_ = step_;
}

std::string Trainer::weights_sha256() const {
  std::string all;
  for (const auto& [name, t] : model_state(*encoder_)) {
    const at::Tensor c = t.cpu().contiguous();
    all += name + " " + sha256_hex(c.data_ptr(), c.nbytes()) + "\n";
  }
  return sha256_hex(all.data(), all.size());
}

std::string Trainer::fingerprint() const {
  return fmt::format("ranks={} threads={} isa={} dtype={}", world_.size(), threads_, kernels::isa_name(kernels::best_isa()), config_.text("train.dtype"));
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

std::string Trainer::loader_text() const {
  const LoaderReport report = loader_->report();
  const int64_t threads = config_.integer("data.threads");
  return fmt::format("{} thread{} per rank, {} step{} ahead, at most {:.0f} MB", threads, threads == 1 ? "" : "s", report.depth,
                     report.depth == 1 ? "" : "s", report.bound_mb);
}

std::vector<std::pair<std::string, std::string>> Trainer::summary() const {
  int64_t parameters = 0;
  for (const auto& p : encoder_->parameters()) parameters += p.numel();
  return {
      {"data", fmt::format("{}, {} of {} samples", config_.text("data.train"), subset_.size(), data_->size())},
      {"model", fmt::format("{} + projector, {:.2f} M parameters", config_.text("model.backbone"), static_cast<double>(parameters) / 1e6)},
      {"graph", fmt::format("{}, {} labels known", config_.text("graph.kind"), labelled_) +
                    (store_.edges().empty() ? "" : fmt::format(", {} weighted pairs", store_.edges().pairs()))},
      {"loss", config_.text("loss.kind")},
      {"steps", fmt::format("{} of {} samples, {} per epoch", schedule_.total_steps, epoch_plan_.global_batch, epoch_plan_.steps_per_epoch()) +
                    (edge_samples_ > 0 ? fmt::format(", and up to {} of which relations are known", edge_samples_) : "")},
      {"learning rate", fmt::format("{:g} peak, {}, {} warm-up steps", schedule_.peak, config_.text("optim.kind"), schedule_.warmup_steps)},
      {"ranks", fmt::format("{} × {} thread{} on {}, {}", world_.size(), threads_, threads_ == 1 ? "" : "s",
                            device_.is_cpu() ? "the CPU" : "a GPU each", kernels::isa_name(kernels::best_isa()))},
      {"loader", loader_text()},
      {"run folder", run_dir_},
  };
}

}  // namespace pal
