#include "dist/train/trainer.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/comm/comm.h"
#include "core/eval/embed.h"
#include "core/graph/edge_draw.h"
#include "core/io/sha256.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "core/model/precision.h"
#include "core/model/state.h"
#include "dist/health/consistency.h"
#include "dist/train/range.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"

namespace pal::dist {
namespace {

// Of the global batch, with this rank's positions.
loss::BatchRows batch_rows(const data::LoadedStep& loaded, int rank) {
  loss::BatchRows rows;
  rows.samples = loaded.samples;
  rows.weights = loaded.weights;
  rows.rank_begin = loaded.rank_begin;
  rows.begin = loaded.rank_begin[rank];
  rows.end = loaded.rank_begin[rank + 1];
  return rows;
}

}  // namespace

StepReport Trainer::step() {
  const Range range("step");
  const Clock::time_point start = Clock::now();
  StepReport report;
  report.step = step_;
  report.lr = schedule_.at(step_);
  for (const auto& observer : observers_) observer->before(step_);
  report.warning = exchange_answers();
  plan_ahead();

  const data::LoadedStep loaded = load();  // read and augmented by the loader's threads
  const loss::Batch batch = plan(loaded);  // the same global batch and graph on every rank
  const Encoded encoded = encode(loaded, batch);
  const loss::LossResult loss = compute_loss(encoded.outputs, batch, report);
  for (const auto& observer : observers_) observer->on_gradient(step_, loss.dz);
  backward(encoded, loaded, loss.dz);
  guard(report);
  if (!report.skipped) update(report.lr);
  ++step_;

  report.seconds = seconds_since(start);
  report.images_per_s = static_cast<double>(batch.samples.size()) / report.seconds;
  const Range after("observe");
  const at::Tensor z = objective_->embedding(encoded.outputs.detach());
  for (const auto& observer : observers_) observer->after({report, z, batch, step_});
  return report;
}

void Trainer::set_phase(Phase phase) const {
  if (control_.watchdog) control_.watchdog->set_phase(phase);
}

// Answers that take effect at this step enter the graph, and a round begins where one is due. Returns the warnings.
std::string Trainer::exchange_answers() {
  const Range range("round");
  if (rounds_) {
    set_phase(Phase::long_operation);
    rounds_->at_boundary(step_, embed_pool());
  }
  set_phase(Phase::steps);
  return rounds_ ? rounds_->warning() : "";
}

// The loader may prepare the steps in which the graph stays as it is now: the samples of a batch depend on it.
void Trainer::plan_ahead() {
  if (step_ < planned_until_) return;
  const bool changes = rounds_ && edge_samples_ > 0;
  planned_until_ = changes ? std::min(rounds_->next_change(step_), last_step()) : last_step();
  loader_->plan_on(planned_until_,
                   edge_samples_ > 0 ? std::make_shared<const graph::EdgeDraw>(store_, subset_) : nullptr);
}

data::LoadedStep Trainer::load() {
  const Range range("load");
  set_phase(Phase::loading);
  data::LoadedStep loaded = loader_->next();
  set_phase(Phase::steps);
  return loaded;
}

loss::Batch Trainer::plan(const data::LoadedStep& loaded) const {
  const Range range("plan");
  loss::BatchRows rows = batch_rows(loaded, world_.rank());
  rows.views = static_cast<int32_t>(run_.augment.total_views());
  rows.threads = threads_;
  for (int64_t sample : rows.samples) rows.labels.push_back(store_.label(sample));
  graph::BatchGraph graph = graph::build_batch_graph(store_, graph_spec_, rows.samples, rows.views);
  loss::Batch batch = loss::with_graph(std::move(rows), std::move(graph));
  objective_->prepare(batch, static_cast<uint64_t>(step_));
  return batch;
}

// One forward for all views of a size, or one each; the one place where images meet the device and its precision.
at::Tensor Trainer::encode_views(const at::Tensor& images, int64_t views) const {
  const model::Autocast autocast(run_.train.precision, device_.type());
  const at::ScalarType type = run_.train.dtype;  // of the loss, whatever the encoder's products were in
  const at::Tensor here = images.to(device_);
  if (run_.train.views == setup::ViewPasses::joint) return encoder_->outputs(here).to(type);
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& view : here.chunk(views)) outputs.push_back(encoder_->outputs(view).to(type));
  return at::cat(outputs);
}

// In one piece, or in micro-batches whose activations are not kept.
Trainer::Encoded Trainer::encode(const data::LoadedStep& loaded, const loss::Batch& batch) const {
  const Range range("encode");
  const auto large = [this](const at::Tensor& images) { return encode_views(images, run_.augment.views); };
  if (run_.train.micro_batches > 1) {
    const model::MicroBatches pieces(batch.begin, batch.end, batch.views, run_.train.micro_batches);
    const at::Tensor outputs = pieces.forward(large, loaded.images);
    model::discard_batch_norm(*encoder_);  // the statistics are those of the second pass, in backward
    return {outputs, pieces};
  }
  const at::Tensor outputs = large(loaded.images);
  if (!loaded.small_images.defined()) return {outputs, std::nullopt};
  return {at::cat({outputs, encode_views(loaded.small_images, run_.augment.small_views)}), std::nullopt};
}

loss::LossResult Trainer::compute_loss(const at::Tensor& outputs, const loss::Batch& batch, StepReport& report) const {
  const Range range("loss");
  comm::CountingComm counted(world_.compute());
  loss::LossResult loss = (*objective_)(outputs.detach().contiguous(), batch, counted);
  report.loss_bytes = counted.bytes();
  report.loss = loss.value;
  report.terms = loss.terms;
  return loss;
}

// Gradients are views into the buckets, and are summed over ranks.
void Trainer::backward(const Encoded& encoded, const data::LoadedStep& loaded, const at::Tensor& dz) {
  const Range range("backward");
  grads_->begin();
  const auto release = [this] { grads_->release(); };
  if (encoded.pieces) {
    const auto large = [this](const at::Tensor& images) { return encode_views(images, run_.augment.views); };
    encoded.pieces->backward(large, loaded.images, dz, release);
  } else {
    release();
    encoded.outputs.backward(dz);
  }
  grads_->sum();
}

// Commits the statistics of the step, or discards them when the loss or a gradient is not finite. The sums are the same
// on every rank, so all ranks decide alike.
void Trainer::guard(StepReport& report) {
  const Range range("guard");
  report.skipped = !std::isfinite(report.loss) || !grads_->finite();
  if (!report.skipped) {
    model::commit_batch_norm(*encoder_);
    objective_->commit();
    skips_ = 0;
    ++trained_;
    return;
  }
  model::discard_batch_norm(*encoder_);
  objective_->discard();
  report.give_up = ++skips_ >= run_.train.max_skips;
}

void Trainer::update(double lr) {
  const Range range("update");
  optimizer_->step(lr);
}

QueryRounds::EmbedPool Trainer::embed_pool() {
  return [this](const std::vector<int64_t>& samples, eval::SampleSlice slice) {
    share_statistics();
    eval::EmbedOptions options;
    options.what = eval::EmbedWhat::embedding;
    options.augment = augment_;
    options.dtype = run_.train.dtype;
    options.threads = threads_;
    return eval::embed_slice(*encoder_, *data_, samples, slice, options);
  };
}

void Trainer::finish() {
  PAL_CHECK_CODE(Exit::numerics, trained_ > 0, "nothing was trained: the gradient was not finite in any step up to {}",
                 step_, "lower optim.base_lr or lengthen optim.warmup_epochs");
  save_last();
  if (metrics_) metrics_->finish(step_, weights_sha256(), seconds_since(start_));
  world_.control().barrier();  // no rank ends before the last checkpoint is complete
}

void Trainer::pause() {
  save_last();
  world_.control().barrier();
}

void Trainer::save_last() {
  set_phase(Phase::long_operation);
  if (saved_step_ != step_) save_checkpoint();
  bool saved = checkpoints_->drain();
  if (!saved) {
    save_checkpoint();  // once more: the disk may have room now
    saved = checkpoints_->drain();
  }
  PAL_CHECK(saved, "the last checkpoint, of step {}, could not be written", step_,
            "the warning above gives the reason; make room, then give the same command: it resumes from the checkpoint "
            "before");
  if (folder_) folder_->check();
}

// A rank was asked to stop, or a checkpoint is due by rank 0's clock: all ranks follow after the same step.
void Trainer::sync_ranks(const FinishedStep& done) {
  const StepSync::Decision all = step_sync_->sync(*checkpoints_);
  stopping_ = all.stop || (rounds_ && rounds_->leaves());
  if (all.save && !stopping_ && !done.report.give_up && trained_ > 0 && saved_step_ != step_) save_checkpoint();
}

// What a checkpoint holds, by group; "extra" is what the objective keeps between steps (a support queue), the same on
// every rank.
Checkpointer::Groups Trainer::checkpointed() const {
  return {{"model", model::model_state(*encoder_)}, {"optim", optimizer_->state()}, {"extra", objective_->state()}};
}

// Where ranks have batch statistics of their own, those of rank 0 are saved and are used in evaluation mode.
void Trainer::share_statistics() const {
  if (run_.model.batch_norm == model::BatchNormScope::global || world_.size() == 1) return;
  for (at::Tensor& running : encoder_->buffers()) {
    const at::Tensor dense = running.cpu();
    world_.control().broadcast(dense, 0);
    if (!dense.is_same(running)) running.copy_(dense);
  }
}

void Trainer::save_checkpoint() {
  set_phase(Phase::long_operation);  // a rank may wait for its disk, rank 0 for its round
  if (folder_) folder_->check();
  share_statistics();
  check_same_parameters(model::trainable(*encoder_), step_,
                        world_.control());  // a checkpoint of wrong parameters must not replace a good one
  saved_step_ = step_;
  saved_at_ = Clock::now();
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
                     kernels::isa_name(kernels::best_isa()), config::choice_name(setup::kDtypes, run_.train.dtype));
}

}  // namespace pal::dist
