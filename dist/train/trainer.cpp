#include "dist/train/trainer.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/data/loader/augment_config.h"
#include "core/eval/embed.h"
#include "core/io/sha256.h"
#include "core/model/autocast.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/setup/setup.h"
#include "dist/health/consistency.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"

namespace pal::dist {

StepReport Trainer::step() {
  const Clock::time_point start = Clock::now();
  StepReport report;
  report.step = step_;
  report.lr = schedule_.at(step_);

  // 1. Plan: answers that take effect now, then this step's global batch, the same on every rank.
  if (control_.faults) control_.faults->before_step(step_, model::model_state(*encoder_));
  if (rounds_) {
    if (control_.watchdog) control_.watchdog->set_phase(Phase::long_operation);
    rounds_->at_boundary(step_, embed_pool());
    report.warning = rounds_->warning();
  }
  if (control_.watchdog) control_.watchdog->set_phase(Phase::steps);
  plan_ahead();
  // 2. Read and 3. augment: done ahead by the loader's threads.
  const data::LoadedStep loaded = loader_->next();
  const loss::Batch batch = plan(loaded);
  // 4. Encode, at once or in pieces.
  const auto encode_images = [this](const at::Tensor& images) {
    return encode(images, config_.integer("augment.views"));
  };
  const std::optional<model::MicroBatches> pieces = micro_batches(batch);
  const at::Tensor z = pieces ? pieces->forward(encode_images, loaded.images) : encode(loaded);
  if (pieces) model::discard_batch_norm(*encoder_);  // the second pass tells
  // 5. Loss.
  comm::CountingComm counted(world_.compute());
  loss::LossResult loss = (*objective_)(z.detach().contiguous(), batch, counted);
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
  // 8. Optimizer.
  if (!report.skipped) optimizer_->step(report.lr);
  ++step_;
  // 9. Log and save.
  const double seconds = seconds_since(start);
  report.images_per_s = static_cast<double>(batch.samples.size()) / seconds;
  log(report, objective_->embedding(z.detach()), batch);
  if (step_ % config_.integer("train.compare_every") == 0)
    check_same_parameters(model::trainable(*encoder_), step_, world_.control());
  if (step_ % config_.integer("checkpoint.every") == 0 && !report.give_up) save_checkpoint();
  stopping_ = step_sync_->sync(*checkpoints_) || (rounds_ && rounds_->leaves());
  if (control_.watchdog) control_.watchdog->step_done(step_, seconds);
  return report;
}

void Trainer::guard(StepReport& report) {
  if (!report.skipped) {
    model::commit_batch_norm(*encoder_);
    objective_->commit();
    skips_ = 0;
    return;
  }
  model::discard_batch_norm(*encoder_);
  objective_->discard();
  report.give_up = ++skips_ >= config_.integer("train.max_skips");
}

// The loader may prepare the steps in which the graph stays as it is now: the samples of a batch depend on it.
void Trainer::plan_ahead() {
  if (step_ < planned_until_) return;
  const bool changes = rounds_ && edge_samples_ > 0;
  planned_until_ = changes ? std::min(rounds_->next_change(step_), last_step()) : last_step();
  loader_->plan_on(planned_until_,
                   edge_samples_ > 0 ? std::make_shared<const graph::EdgeDraw>(store_, subset_) : nullptr);
}

loss::Batch Trainer::plan(const data::LoadedStep& loaded) const {
  loss::Batch batch;
  batch.samples = loaded.samples;
  batch.weights = loaded.weights;
  batch.rank_begin = loaded.rank_begin;
  batch.begin = loaded.rank_begin[world_.rank()];
  batch.end = loaded.rank_begin[world_.rank() + 1];
  batch.views = static_cast<int32_t>(data::total_views(config_));
  batch.graph = graph::build_batch_graph(store_, spec_, batch.samples, batch.views);
  batch.threads = threads_;
  for (int64_t sample : batch.samples) batch.labels.push_back(store_.label(sample));
  objective_->prepare(batch, static_cast<uint64_t>(step_));
  return batch;
}

// One forward for all views of a size, or one each; the one place where images meet the device and its precision.
at::Tensor Trainer::encode(const at::Tensor& images, int64_t views) const {
  const model::Autocast autocast(
      config_.text("train.precision") == "bf16" ? model::Precision::bf16 : model::Precision::full, device_.type());
  const at::ScalarType type = setup::scalar_type(config_);  // of the loss, whatever the encoder's products were in
  const at::Tensor here = images.to(device_);
  if (config_.text("train.views") == "joint") return encoder_->outputs(here).to(type);
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& view : here.chunk(views)) outputs.push_back(encoder_->outputs(view).to(type));
  return at::cat(outputs);
}

at::Tensor Trainer::encode(const data::LoadedStep& loaded) const {
  const at::Tensor large = encode(loaded.images, config_.integer("augment.views"));
  if (!loaded.small_images.defined()) return large;
  return at::cat({large, encode(loaded.small_images, config_.integer("augment.small_views"))});
}

QueryRounds::EmbedPool Trainer::embed_pool() {
  return [this](const std::vector<int64_t>& samples, eval::SampleSlice slice) {
    share_statistics();
    eval::EmbedOptions options;
    options.what = eval::EmbedWhat::embedding;
    options.augment = augment_;
    options.dtype = setup::scalar_type(config_);
    options.threads = threads_;
    return eval::embed_slice(*encoder_, *data_, samples, slice, options);
  };
}

std::optional<model::MicroBatches> Trainer::micro_batches(const loss::Batch& batch) const {
  const int64_t count = config_.integer("train.micro_batches");
  if (count == 1) return std::nullopt;
  return model::MicroBatches(batch.begin, batch.end, batch.views, count);
}

void Trainer::finish() {
  save_last();
  if (metrics_) metrics_->finish(step_, weights_sha256(), seconds_since(start_));
  world_.control().barrier();  // no rank leaves before the last checkpoint stands
}

void Trainer::pause() {
  save_last();
  world_.control().barrier();
}

void Trainer::save_last() {
  if (control_.watchdog) control_.watchdog->set_phase(Phase::long_operation);
  if (saved_step_ != step_) save_checkpoint();
  PAL_CHECK(checkpoints_->drain(), "the last checkpoint is not written, of step", step_,
            "the warning above says why; make room and start again, it goes on from the one before");
}

// What a checkpoint holds, by group; "extra" is what the objective keeps between steps (a support queue), the same on every
// rank.
Checkpointer::Groups Trainer::checkpointed() const {
  return {{"model", model::model_state(*encoder_)}, {"optim", optimizer_->state()}, {"extra", objective_->state()}};
}

// Where ranks have batch statistics of their own, rank 0's running ones are what is saved, whoever writes them, and what is
// looked at in evaluation mode.
void Trainer::share_statistics() const {
  if (config_.text("model.batch_norm") == "global" || world_.size() == 1) return;
  for (at::Tensor& running : encoder_->buffers()) {
    const at::Tensor dense = running.cpu();
    world_.control().broadcast(dense, 0);
    if (!dense.is_same(running)) running.copy_(dense);
  }
}

void Trainer::save_checkpoint() {
  if (control_.watchdog)
    control_.watchdog->set_phase(Phase::long_operation);  // a rank may wait for its disk, rank 0 for its round
  share_statistics();
  check_same_parameters(model::trainable(*encoder_), step_,
                      world_.control());  // what goes wrong later is not saved over what is right
  saved_step_ = step_;
  record::CheckpointState state;
  state.step = step_;
  state.seed = epoch_.seed;
  state.fingerprint = fingerprint();
  state.graph_version = store_.version();
  state.ledger_position = rounds_ ? rounds_->ledger_position() : 0;
  checkpoints_->save(state);
}

std::string Trainer::weights_sha256() const {
  std::string all;
  for (const auto& [name, t] : model::model_state(*encoder_)) {
    const at::Tensor c = t.cpu().contiguous();
    all += name + " " + io::sha256_hex(c.data_ptr(), c.nbytes()) + "\n";
  }
  return io::sha256_hex(all.data(), all.size());
}

std::string Trainer::fingerprint() const {
  return fmt::format("ranks={} threads={} isa={} dtype={}", world_.size(), threads_,
                     kernels::isa_name(kernels::best_isa()), config_.text("train.dtype"));
}

}  // namespace pal::dist
