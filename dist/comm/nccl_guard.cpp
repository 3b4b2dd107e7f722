// nccl_guard: the channel's thread: it answers where this rank is, and ends what NCCL or the clock says is lost.
#include "dist/comm/nccl_channel.h"
#include "kernels/base/clock.h"

namespace pal::dist {
namespace {

constexpr auto kGuardTick = std::chrono::milliseconds(50);
constexpr auto kGrace = std::chrono::seconds(1);  // before that nobody asks the device about a launch
constexpr double kRollCallSeconds = 2;

}  // namespace

LaunchStatus NcclChannel::place() const {
  const std::lock_guard lock(place_mutex_);
  return place_;
}

std::string NcclChannel::absent(Clock::time_point since, const std::function<void()>& meanwhile) {
  return describe_missing(roll_->ask(place(), kRollCallSeconds, meanwhile), rank_, seconds_since(since));
}

std::optional<Clock::time_point> NcclChannel::oldest_waiting() {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // a launch under way is not a second old, or finds out itself
  if (!lock || comm_ == nullptr || in_flight_.empty() || Clock::now() - in_flight_.front().begin < kGrace)
    return std::nullopt;
  try {
    retire();
  } catch (const Error&) {  // the enqueuing thread meets it too, and can tell
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
  roll_->answer(place());
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || comm_ == nullptr) return;
  ncclResult_t state = ncclSuccess;
  call(ncclCommGetAsyncError(comm_, &state));
  call(state);
  if (in_flight_.empty() || Clock::now() - in_flight_.front().begin < kGrace) return;
  retire();
  if (in_flight_.empty() || seconds_since(in_flight_.front().begin) <= options_.seconds) return;
  lose(absent(in_flight_.front().begin, [this] { roll_->answer(place()); }));
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
