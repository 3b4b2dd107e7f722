#include "dist/train/grad_sync.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <c10/util/BFloat16.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "core/comm/rank_slices.h"
#include "core/ops/named_tensors.h"
#include "dist/comm/device_comm.h"
#include "kernels/base/clock.h"
#include "kernels/base/vec.h"

namespace pal::dist {
namespace {

using c10::BFloat16;

// A bfloat16 tensor is sent as rows of two bytes: Comm has no such type.
at::Tensor halves(int64_t n) { return at::empty({n, 2}, at::kByte); }
BFloat16* as_bfloat16(const at::Tensor& bytes) { return static_cast<BFloat16*>(bytes.data_ptr()); }

// Each rank adds its slice of every rank's gradients in fp32 and sends the rounded sum to every rank.
void sum_as_bfloat16(float* x, int64_t n, comm::Comm& comm) {
  const int ranks = comm.size();
  const std::vector<int64_t> begin = comm::rank_slices(n, ranks);
  std::vector<int64_t> slices;
  for (int r = 0; r < ranks; ++r) slices.push_back(begin[r + 1] - begin[r]);
  const int64_t own = slices[comm.rank()];

  const at::Tensor rounded = halves(n);
  for (int64_t i = 0; i < n; ++i) as_bfloat16(rounded)[i] = x[i];
  const at::Tensor received = comm.all_to_all_v(rounded, slices, std::vector<int64_t>(ranks, own));
  const at::Tensor sums = halves(own);
  for (int64_t i = 0; i < own; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += static_cast<float>(as_bfloat16(received)[r * own + i]);
    as_bfloat16(sums)[i] = sum;
  }
  const at::Tensor all = comm.all_gather_v(sums, slices);
  for (int64_t i = 0; i < n; ++i) x[i] = as_bfloat16(all)[i];
}

// One pass.
bool all_finite(const at::Tensor& bucket) {
  if (!bucket.is_cpu()) return at::isfinite(bucket).all().item<bool>();
  const kernels::Isa isa = kernels::best_isa();
  return bucket.scalar_type() == at::kFloat
             ? kernels::vec_ops<float>(isa).first_not_finite(bucket.const_data_ptr<float>(), bucket.numel()) < 0
             : kernels::vec_ops<double>(isa).first_not_finite(bucket.const_data_ptr<double>(), bucket.numel()) < 0;
}

}  // namespace

void sum_bucket(const at::Tensor& bucket, comm::Comm& comm, GradDtype dtype) {
  if (comm.size() == 1) return;
  if (dtype == GradDtype::bfloat16 && bucket.scalar_type() == at::kFloat) {
    const at::Tensor host = bucket.cpu();  // the bucket itself, where it is on the CPU
    sum_as_bfloat16(host.data_ptr<float>(), host.numel(), comm);
    if (!bucket.is_cpu()) bucket.copy_(host);
  } else {
    comm.all_reduce(bucket, comm::ReduceOp::sum);
  }
}

double SyncTime::hidden() const {
  return seconds > 0 ? std::clamp(1 - waited / seconds, 0.0, 1.0) : std::numeric_limits<double>::quiet_NaN();
}

// run() is the reducer thread. It waits on `changed` for the next launched bucket; finish(), in the backward thread,
// waits on `changed` for the last one. `mutex` guards launched, done, stop and error. A bucket between its launch and
// its end belongs to the reducer thread, and so do `finite` and `seconds` from begin() to finish().
struct GradSync::Reducer {
  std::vector<at::Tensor> buckets;
  comm::Comm& comm;
  const GradDtype dtype;
  std::mutex mutex;
  std::condition_variable changed;
  size_t launched = 0, done = 0;
  bool finite = true, stop = false;
  double seconds = 0;
  std::exception_ptr error;
  std::thread thread;
  // Set where the communicator carries GPU tensors: then there is no thread, and launch() enqueues.
  DeviceComm* device = nullptr;
  std::vector<at::Tensor> narrow;  // of GradDtype::bfloat16: what is being sent
  Overlap overlap;

  Reducer(comm::Comm& c, GradDtype d) : comm(c), dtype(d) {}

  void use_device_if_enqueued() {
    auto* const able = dynamic_cast<DeviceComm*>(&comm);
    if (able && able->enqueues()) device = able;
    narrow.resize(buckets.size());
  }
  void enqueue(size_t b) {
    const at::Tensor& bucket = buckets[b];
    const bool rounds = dtype == GradDtype::bfloat16 && bucket.scalar_type() == at::kFloat;
    narrow[b] = rounds ? bucket.to(at::kBFloat16) : at::Tensor();
    device->begin_all_reduce(rounds ? narrow[b] : bucket);
  }
  void join() {
    device->join();
    for (size_t b = 0; b < buckets.size(); ++b) {
      if (narrow[b].defined()) buckets[b].copy_(narrow[b]);
      finite = all_finite(buckets[b]) && finite;
    }
    overlap = device->overlap();  // the host has waited above
  }

  void reduce(const at::Tensor& bucket) {
    const auto start = Clock::now();
    sum_bucket(bucket, comm, dtype);
    seconds += seconds_since(start);
    finite = finite && all_finite(bucket);
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || done < launched; });
      if (stop) return;
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
      reducer_(std::make_shared<Reducer>(comm, options.dtype)) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    reducer_->buckets.push_back(buckets_[b].gradients.flat);
    for (size_t k = 0; k < buckets_[b].parameters.size(); ++k) {
      torch::autograd::impl::set_post_acc_grad_hooks(buckets_[b].parameters[k], std::make_unique<Hook>(*this, b, k));
    }
  }
  reducer_->use_device_if_enqueued();
  if (comm.size() > 1 && !reducer_->device) reducer_->thread = std::thread([reducer = reducer_] { reducer->run(); });
  begin();
}

GradSync::~GradSync() {
  for (optim::FlatBucket& bucket : buckets_) {
    for (const at::Tensor& p : bucket.parameters) torch::autograd::impl::set_post_acc_grad_hooks(p, nullptr);
  }
  if (!reducer_->thread.joinable()) return;
  bool idle = false;
  {
    const std::lock_guard lock(reducer_->mutex);
    reducer_->stop = true;
    idle = reducer_->error || reducer_->done == reducer_->launched;
    reducer_->changed.notify_all();
  }
  if (idle) {
    reducer_->thread.join();
    return;
  }
  if (std::uncaught_exceptions() == 0)
    std::fputs("warning: gradients were not summed when GradSync ended; its thread is detached\n", stderr);
  reducer_->thread.detach();
}

void GradSync::begin() {
  released_ = false;
  launched_ = 0;
  time_ = {};
  reducer_->begin();
  filling_.assign(buckets_.size(), {});
  for (size_t b = 0; b < buckets_.size(); ++b) {
    filling_[b].arrived.assign(buckets_[b].parameters.size(), 0);
    for (at::Tensor& p : buckets_[b].parameters)
      p.mutable_grad() = at::Tensor();  // then backward gives the hook a tensor of its own
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
  if (reducer_->device) {
    time_ = {reducer_->overlap.seconds, reducer_->overlap.waited};
  } else {
    time_ = {reducer_->seconds, reducer_->comm.size() > 1 ? seconds_since(start) : 0};
  }
}

bool GradSync::finite() const { return reducer_->finite; }

int64_t GradSync::bytes() const {
  int64_t n = 0;
  for (const optim::FlatBucket& b : buckets_) n += b.gradients.flat.numel() * b.gradients.flat.element_size();
  return n;
}

}  // namespace pal::dist
