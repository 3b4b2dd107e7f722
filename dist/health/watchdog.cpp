#include "dist/health/watchdog.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/io/files.h"
#include "dist/health/heartbeat.h"
#include "kernels/base/clock.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"

namespace pal::dist {
namespace {

constexpr auto kTick = std::chrono::milliseconds(250);
constexpr double kSteps = 10;         // median steps: the least limit for collectives
constexpr double kWorking = 0.01;     // CPU seconds of a tick that show work
constexpr double kWriteFlight = 0.9;  // of the limit: then the flight record is written
// After a tick that is this late (in seconds) this process itself has not run: silence in that time is not counted.
constexpr double kLateTick = 2;

double cpu_seconds(int who) {
  rusage used{};
  getrusage(who, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

// run() is the watchdog's thread. `mutex` guards what the computing thread writes: end, phase, steps_since, step and
// step_seconds. `running_since`, `worked` and `cpu` belong to the watchdog's thread.
struct Watchdog::State {
  World& world;
  const std::string run_dir;
  const HangLimits limits;
  HeartbeatChannel heartbeats;
  LocalRanks local;
  std::mutex mutex;
  std::condition_variable ended;
  bool end = false;
  Phase phase = Phase::long_operation;
  Clock::time_point steps_since;  // when the last long operation ended
  int64_t step = 0;
  std::vector<double> step_seconds;  // of the last steps, in a ring
  Clock::time_point running_since;   // this process has had CPU without a pause
  Clock::time_point worked;          // when this process last worked
  double cpu = 0;                    // seconds of its other threads
  std::thread thread;

  State(World& w, std::string dir, const HangLimits& l)
      : world(w), run_dir(std::move(dir)), limits(l), local(MPI_COMM_WORLD) {}

  double waiting_limit() {
    const std::lock_guard lock(mutex);
    if (phase == Phase::long_operation || step_seconds.size() < 3) return limits.hang_s;
    std::vector<double> sorted = step_seconds;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<int64_t>(sorted.size() / 2), sorted.end());
    const double limit = std::max(limits.waiting_s, kSteps * sorted[sorted.size() / 2]);
    // At first the newest heartbeats may still report a wait of the long operation before.
    return seconds_since(steps_since) > kWriteFlight * limit ? limit : limits.hang_s;
  }

  bool loads() {
    const std::lock_guard lock(mutex);
    return phase == Phase::loading;
  }

  // Other threads used the CPU since the last tick, wait for a core or for storage, or the loader is late.
  void look_at_work() {
    const double before = cpu;
    cpu = cpu_seconds(RUSAGE_SELF) - cpu_seconds(RUSAGE_THREAD);
    if (cpu - before > kWorking || loads() || is_working(getpid(), gettid())) worked = Clock::now();
  }

  Heartbeat own_heartbeat() {
    Heartbeat heartbeat;
    const std::vector<const FlightRecorder*> logs = world.flight_recorders();
    for (size_t c = 0; c < kComms; ++c) {
      const CollectiveRecord newest = logs[c]->newest();
      heartbeat.number[c] = newest.number;
      heartbeat.waiting_ms[c] =
          newest.pending ? static_cast<int64_t>(1000 * seconds_since(std::max(newest.begin, running_since))) : -1;
    }
    heartbeat.idle_ms = static_cast<int64_t>(1000 * seconds_since(worked));
    const std::lock_guard lock(mutex);
    heartbeat.step = step;
    return heartbeat;
  }

  void run() {
    pthread_setname_np(pthread_self(), "watchdog");  // shown by top
    std::vector<PeerState> peers(heartbeats.size());
    std::vector<Clock::time_point> last(heartbeats.size(), Clock::now()), last_worked = last;
    Clock::time_point tick = running_since = worked = Clock::now();
    bool flight_written = false, warned = false;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        if (ended.wait_for(lock, kTick, [this] { return end; })) return;
      }
      const bool late = seconds_since(tick) > kLateTick;
      tick = Clock::now();
      if (late) {
        running_since = tick;
        std::fill(last.begin(), last.end(), tick);
        std::fill(last_worked.begin(), last_worked.end(), tick);
      }
      look_at_work();
      const int self = heartbeats.rank();
      const Heartbeat mine = own_heartbeat();
      heartbeats.send(mine);
      const auto take = [&](int rank, const Heartbeat& heartbeat) {
        peers[rank].heartbeat = heartbeat;
        last[rank] = tick;
        last_worked[rank] = std::max(last_worked[rank], tick - std::chrono::milliseconds(heartbeat.idle_ms));
      };
      take(self, mine);
      for (const auto& [rank, heartbeat] : heartbeats.receive()) take(rank, heartbeat);
      if (late) continue;
      for (int r = 0; r < heartbeats.size(); ++r) {
        peers[r].silent_s = std::chrono::duration<double>(tick - last[r]).count();
        // Without heartbeats only the kernel knows whether a rank of this host works.
        if (peers[r].silent_s > kLateTick && local.works(r)) last_worked[r] = tick;
        peers[r].idle_s = std::chrono::duration<double>(tick - last_worked[r]).count();
      }
      const double limit = waiting_limit();
      const int64_t longest = *std::max_element(mine.waiting_ms.begin(), mine.waiting_ms.end());
      // Written before the limit, because rank 0 ends this process at the limit.
      if (!flight_written && static_cast<double>(longest) > 1000 * kWriteFlight * limit) {
        write_flight(longest);
        flight_written = true;
      }
      if (longest < 1000) flight_written = false;
      // The ranks other than 0 report rank 0's silence one after the other, so that one of them prints it.
      const double delay = std::min(3.0, 0.5 * self);
      const auto stall = find_stalled_ranks(peers, self, {limits.silence_s + delay, limit, limits.hang_s + delay});
      if (stall && stall->hung) end_job(stall->sentence, longest);
      if (stall && !warned) {
        std::fprintf(stderr,
                     "%s warning: %s; it still works, so the job waits for it, %.0f s at most (train.hang_seconds)\n",
                     world.prefix().c_str(), stall->sentence.c_str(), limits.hang_s);
      }
      warned = stall.has_value();
    }
  }

  void write_flight(int64_t waiting_ms) {
    try {
      nlohmann::ordered_json out = {{"rank", world.rank()},
                                    {"ranks", world.size()},
                                    {"host", world.host()},
                                    {"pid", getpid()},
                                    {"waiting_ms", waiting_ms}};
      {
        const std::lock_guard lock(mutex);
        out["step"] = step;
      }
      for (const FlightRecorder* log : world.flight_recorders()) {
        nlohmann::ordered_json list = nlohmann::ordered_json::array();
        for (const CollectiveRecord& record : log->all()) {
          const double ago = seconds_since(record.begin);
          list.push_back(
              {{"number", record.number},
               {"kind", record.kind},
               {"shape", std::vector<int64_t>(record.shape.begin(), record.shape.begin() + record.sides)},
               {"began_s_ago", ago},
               {"seconds", record.pending ? ago : std::chrono::duration<double>(record.end - record.begin).count()},
               {"pending", record.pending}});
        }
        out["collectives"][log->name()] = list;
      }
      std::filesystem::create_directories(run_dir + "/flight");
      io::write_file_atomically(run_dir + "/flight/rank-" + std::to_string(world.rank()) + ".json", out.dump(1) + "\n");
    } catch (const std::exception& e) {
      std::fprintf(stderr, "warning: the flight record cannot be written: %s\n", printable(e.what()).c_str());
    }
  }

  [[noreturn]] void end_job(const std::string& sentence, int64_t waiting_ms) {
    write_flight(waiting_ms);
    std::fprintf(stderr, "%s error: %s; the last collectives of each rank are in %s/flight\n", world.prefix().c_str(),
                 printable(sentence).c_str(), printable(run_dir).c_str());
    std::this_thread::sleep_for(2 * kTick);  // the other ranks write their flight records
    world.abort(static_cast<int>(Exit::lost));
  }
};

Watchdog::Watchdog(World& world, std::string run_dir, const HangLimits& limits) {
  if (world.size() == 1) return;
  state_ = std::make_unique<State>(world, std::move(run_dir), limits);
  state_->thread = std::thread([s = state_.get()] { s->run(); });
}

Watchdog::~Watchdog() {
  if (!state_) return;
  if (std::uncaught_exceptions() == 0)
    std::fprintf(stderr, "%s warning: the watchdog ends without stop(); its communicator is leaked\n",
                 state_->world.prefix().c_str());
  end_thread();
}

void Watchdog::stop() {
  if (!state_) return;
  end_thread();
  state_->heartbeats.close();
  state_.reset();
}

void Watchdog::end_thread() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->end = true;
  }
  state_->ended.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
}

void Watchdog::set_phase(Phase phase) {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  if (phase != Phase::long_operation && state_->phase == Phase::long_operation) state_->steps_since = Clock::now();
  state_->phase = phase;
}

void Watchdog::step_done(int64_t step, double seconds) {
  if (!state_) return;
  constexpr size_t kKept = 64;
  const std::lock_guard lock(state_->mutex);
  state_->step = step;
  if (state_->step_seconds.size() < kKept) {
    state_->step_seconds.push_back(seconds);
  } else {
    state_->step_seconds[static_cast<size_t>(step) % kKept] = seconds;
  }
}

}  // namespace pal::dist
