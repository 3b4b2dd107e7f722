// nccl_guard: the guard thread of an NcclChannel. Every 50 ms it replies to status queries of other ranks, and aborts
// the communicator when NCCL reports an error or a launch is overdue. It never waits for the enqueuing thread: while
// that thread holds mutex_, it only replies. It is the one thread beside the enqueuing one that calls CUDA: a thread
// that has not chosen this rank's device would create a context on GPU 0.
#include "dist/comm/nccl_channel.h"
#include "kernels/base/clock.h"

namespace pal::dist {
namespace {

constexpr auto kGuardTick = std::chrono::milliseconds(50);
constexpr auto kGrace = std::chrono::seconds(1);  // a launch younger than this is not looked up on the device
constexpr double kQuerySeconds = 2;

}  // namespace

LaunchStatus NcclChannel::status() const {
  const std::lock_guard lock(status_mutex_);
  return status_;
}

std::string NcclChannel::describe_overdue(Clock::time_point since, const std::function<void()>& meanwhile) {
  return describe_missing(status_channel_->query(status(), kQuerySeconds, meanwhile), rank_, seconds_since(since));
}

std::optional<Clock::time_point> NcclChannel::oldest_waiting() const {
  const Clock::rep since = waiting_since_;
  return since == 0 ? std::nullopt : std::optional(Clock::time_point(Clock::duration(since)));
}

void NcclChannel::guard() {
  cudaSetDevice(device_);
  for (;;) {
    {
      std::unique_lock lock(stop_mutex_);
      if (stopped_.wait_for(lock, kGuardTick, [this] { return stop_; })) return;
    }
    try {
      guard_once();
    } catch (const Error& e) {
      if (options_.on_failure) options_.on_failure(e.what());
    }
  }
}

void NcclChannel::guard_once() {
  status_channel_->reply(status());
  waiting_since_ = 0;
  // Held: the enqueuing thread is in a launch, which has its own deadline.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || comm_ == nullptr) return;
  ncclResult_t state = ncclSuccess;
  call(ncclCommGetAsyncError(comm_, &state));
  call(state);
  if (in_flight_.empty() || Clock::now() - in_flight_.front().begin < kGrace) return;
  retire();
  if (in_flight_.empty()) return;
  const Clock::time_point oldest = in_flight_.front().begin;
  if (Clock::now() - oldest >= kGrace) waiting_since_ = oldest.time_since_epoch().count();
  if (seconds_since(oldest) <= options_.seconds) return;
  lose(describe_overdue(in_flight_.front().begin, [this] { status_channel_->reply(status()); }));
}

void NcclChannel::stop_guard() {
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (guard_.joinable()) guard_.join();
}

}  // namespace pal::dist
