// nccl_guard: the guard thread of an NcclChannel. Every 50 ms it replies to status queries of other ranks, and aborts
// the communicator when NCCL reports an error or a launch is overdue. It never waits for the enqueuing thread: while
// that thread holds mutex_, it only replies.
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

std::optional<Clock::time_point> NcclChannel::oldest_waiting() {
  const std::unique_lock lock(
      mutex_, std::try_to_lock);  // held: the enqueuing thread is in a launch, which has its own deadline
  if (!lock || comm_ == nullptr || in_flight_.empty() || Clock::now() - in_flight_.front().begin < kGrace)
    return std::nullopt;
  try {
    retire();
  } catch (const Error&) {  // the enqueuing thread gets and reports the same error
    return std::nullopt;
  }
  if (in_flight_.empty() || Clock::now() - in_flight_.front().begin < kGrace) return std::nullopt;
  return in_flight_.front().begin;
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
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || comm_ == nullptr) return;
  ncclResult_t state = ncclSuccess;
  call(ncclCommGetAsyncError(comm_, &state));
  call(state);
  if (in_flight_.empty() || Clock::now() - in_flight_.front().begin < kGrace) return;
  retire();
  if (in_flight_.empty() || seconds_since(in_flight_.front().begin) <= options_.seconds) return;
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
