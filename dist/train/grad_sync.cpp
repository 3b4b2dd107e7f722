#include "dist/train/grad_sync.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "core/ops/named_tensors.h"
#include "dist/comm/device_comm.h"
#include "kernels/base/clock.h"

namespace pal::dist {

double SyncTime::hidden() const {
  return seconds > 0 ? std::clamp(1 - waited / seconds, 0.0, 1.0) : std::numeric_limits<double>::quiet_NaN();
}

// Who waits for what: the thread waits on `changed` for a bucket that may go, finish() for the last one. All is guarded by
// `mutex`, except a bucket between its launch and its end: it belongs to the thread.
struct GradSync::Reducer {
  std::vector<at::Tensor> buckets;
  comm::Comm& comm;
  const GradDtype wire;
  std::mutex mutex;
  std::condition_variable changed;
  size_t launched = 0, done = 0;
  bool finite = true, stop = false;
  double seconds = 0;
  std::exception_ptr error;
  std::thread thread;
  // A communicator that enqueues: no thread, backward's own gives it the buckets.
  DeviceComm* device = nullptr;
  std::vector<at::Tensor> narrow;  // of GradDtype::bfloat16: what is on its way

  Reducer(comm::Comm& c, GradDtype w) : comm(c), wire(w) {}

  void choose_carrier() {
    auto* const able = dynamic_cast<DeviceComm*>(&comm);
    if (able && able->enqueues()) device = able;
    narrow.resize(buckets.size());
  }
  void enqueue(size_t b) {
    const at::Tensor& bucket = buckets[b];
    const bool rounds = wire == GradDtype::bfloat16 && bucket.scalar_type() == at::kFloat;
    narrow[b] = rounds ? bucket.to(at::kBFloat16) : at::Tensor();
    device->begin_all_reduce(rounds ? narrow[b] : bucket);
  }
  void join() {
    device->join();
    for (size_t b = 0; b < buckets.size(); ++b) {
      if (narrow[b].defined()) buckets[b].copy_(narrow[b]);
      finite = all_finite(buckets[b]) && finite;
    }
  }

  void reduce(const at::Tensor& bucket) {
    const auto start = Clock::now();
    sum_bucket(bucket, comm, wire);
    seconds += seconds_since(start);
    finite = finite && all_finite(bucket);
  }

  // Of the thread.
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || done < launched; });
      if (done == launched) return;
      lock.unlock();
      std::exception_ptr failed;
      try {
        reduce(buckets[done]);
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      error = failed;
      if (error) stop = true;
      ++done;
      changed.notify_all();
      if (error) return;
    }
  }

  void begin() {
    const std::lock_guard lock(mutex);
    launched = done = 0;
    finite = true;
    seconds = 0;
  }
  void launch() {
    if (device) return enqueue(launched++);
    const std::lock_guard lock(mutex);
    ++launched;
    changed.notify_all();
  }
  void finish() {
    if (comm.size() == 1) {
      for (const at::Tensor& bucket : buckets) reduce(bucket);
      seconds = 0;  // nothing was sent
      return;
    }
    if (device) return join();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return error || done == buckets.size(); });
    if (error) std::rethrow_exception(error);
  }
};

class GradSync::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradSync& sync, size_t bucket, size_t k) : sync_(sync), bucket_(bucket), k_(k) {}
  void operator()(const torch::autograd::Variable&) override { sync_.arrived(bucket_, k_); }

 private:
  GradSync& sync_;
  const size_t bucket_, k_;
};

GradSync::GradSync(const ops::NamedTensors& parameters, comm::Comm& comm, const GradSyncOptions& options)
    : buckets_(optim::flatten(parameters, options.bucket_bytes)),
      reducer_(std::make_shared<Reducer>(comm, options.wire)) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    reducer_->buckets.push_back(buckets_[b].gradients.flat);
    for (size_t k = 0; k < buckets_[b].parameters.size(); ++k) {
      torch::autograd::impl::set_post_acc_grad_hooks(buckets_[b].parameters[k], std::make_unique<Hook>(*this, b, k));
    }
  }
  reducer_->choose_carrier();
  if (comm.size() > 1 && !reducer_->device) reducer_->thread = std::thread([reducer = reducer_] { reducer->run(); });
  begin();
}

GradSync::~GradSync() {
  for (optim::FlatBucket& bucket : buckets_) {
    for (const at::Tensor& p : bucket.parameters) torch::autograd::impl::set_post_acc_grad_hooks(p, nullptr);
  }
  if (!reducer_->thread.joinable()) return;
  if (std::uncaught_exceptions() > 0) {
    reducer_->thread.detach();
    return;
  }
  {
    const std::lock_guard lock(reducer_->mutex);
    reducer_->stop = true;
    reducer_->changed.notify_all();
  }
  reducer_->thread.join();
}

void GradSync::begin() {
  released_ = false;
  launched_ = 0;
  time_ = {};
  reducer_->begin();
  filling_.assign(buckets_.size(), {});
  for (size_t b = 0; b < buckets_.size(); ++b) {
    filling_[b].arrived.assign(buckets_[b].parameters.size(), 0);
    for (at::Tensor& p : buckets_[b].parameters) p.mutable_grad() = at::Tensor();  // then backward hands its own over
  }
}

void GradSync::release() { released_ = true; }

void GradSync::arrived(size_t bucket, size_t k) {
  at::Tensor& grad = buckets_[bucket].parameters[k].mutable_grad();
  const at::Tensor& view = buckets_[bucket].gradients.views[k];
  if (!grad.is_same(view)) {  // the step's first gradient; later ones are added in place
    const at::NoGradGuard no_grad;
    view.copy_(grad);
    grad = view;
  }
  Filling& filling = filling_[bucket];
  if (!released_ || filling.arrived[k]) return;
  filling.arrived[k] = 1;
  ++filling.count;
  launch_full();
}

void GradSync::launch_full() {
  while (launched_ < buckets_.size() && filling_[launched_].count == filling_[launched_].arrived.size()) {
    ++launched_;
    reducer_->launch();
  }
}

void GradSync::sum() {
  for (size_t b = launched_; b < buckets_.size(); ++b) {
    for (size_t k = 0; k < buckets_[b].parameters.size(); ++k) {
      at::Tensor& grad = buckets_[b].parameters[k].mutable_grad();
      const at::Tensor& view = buckets_[b].gradients.views[k];
      if (!grad.defined()) {
        view.zero_();
        grad = view;
      }
    }
    filling_[b].count = filling_[b].arrived.size();
  }
  launch_full();
  const auto start = Clock::now();
  reducer_->finish();
  time_ = {reducer_->seconds, reducer_->comm.size() > 1 ? seconds_since(start) : 0};
}

bool GradSync::finite() const { return reducer_->finite; }

int64_t GradSync::bytes() const {
  int64_t n = 0;
  for (const optim::FlatBucket& b : buckets_) n += b.gradients.flat.numel() * b.gradients.flat.element_size();
  return n;
}

}  // namespace pal::dist
