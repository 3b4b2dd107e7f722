#include "dist/health/watchdog.h"

#include <pthread.h>
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
#include "dist/health/hang_detector.h"
#include "dist/health/local_ranks.h"
#include "kernels/base/clock.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

constexpr auto kTick = std::chrono::milliseconds(250);
constexpr double kSilence = 10, kStarvedSilence = 60, kWaiting = 10, kSteps = 10, kSlowWaiting = 600;
constexpr double kRecorded = 0.9;  // of a limit: then collectives are recorded
constexpr double kStarved =
    2;  // a tick this late says that this process itself did not run: nobody is blamed for that time

}  // namespace

// Who waits for what: the thread sleeps until the next tick or the end; nobody waits for the thread but the destructor.
struct Watchdog::State {
  World& world;
  const std::string run_dir;
  HeartbeatChannel pulse;
  LocalRanks local;
  std::mutex mutex;  // guards what stands below
  std::condition_variable ended;
  bool end = false;
  Pace pace = Pace::slow;
  Clock::time_point steps_since;  // the pace is that of steps
  int64_t step = 0;
  std::vector<double> step_seconds;  // of the last steps, in a ring
  Clock::time_point awake;           // of the thread: since when this process runs without a pause
  std::thread thread;

  State(World& w, std::string dir) : world(w), run_dir(std::move(dir)), local(MPI_COMM_WORLD) {}

  double waiting_limit() {
    const std::lock_guard lock(mutex);
    if (pace == Pace::slow || step_seconds.size() < 3) return kSlowWaiting;
    std::vector<double> sorted = step_seconds;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<int64_t>(sorted.size() / 2), sorted.end());
    const double limit = std::max(kWaiting, kSteps * sorted[sorted.size() / 2]);
    return seconds_since(steps_since) > kRecorded * limit
               ? limit
               : kSlowWaiting;  // the last beats may still tell of a wait from before
  }

  Heartbeat own_beat() {
    Heartbeat beat;
    const std::vector<const FlightRecorder*> logs = world.flight_recorders();
    for (size_t c = 0; c < kComms; ++c) {
      const CollectiveRecord f = logs[c]->newest();
      beat.number[c] = f.number;
      beat.waiting_ms[c] = f.pending ? static_cast<int64_t>(1000 * seconds_since(std::max(f.begin, awake))) : -1;
    }
    const std::lock_guard lock(mutex);
    beat.step = step;
    return beat;
  }

  void run() {
    pthread_setname_np(pthread_self(), "watchdog");  // for top and for those who measure what it costs
    std::vector<PeerState> heard(pulse.size());
    std::vector<Clock::time_point> last(pulse.size(), Clock::now());
    Clock::time_point tick = awake = Clock::now();
    bool recorded = false;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        if (ended.wait_for(lock, kTick, [this] { return end; })) return;
      }
      const bool starved = seconds_since(tick) > kStarved;
      tick = Clock::now();
      if (starved) {
        awake = tick;
        std::fill(last.begin(), last.end(), tick);
      }
      const Heartbeat mine = own_beat();
      pulse.send(mine);
      heard[pulse.rank()].beat = mine;
      last[pulse.rank()] = tick;
      for (const auto& [rank, beat] : pulse.receive()) {
        heard[rank].beat = beat;
        last[rank] = tick;
      }
      if (starved) continue;
      for (int r = 0; r < pulse.size(); ++r) {
        if (r != pulse.rank() && (pulse.rank() == 0 || r == 0))
          listen(r, std::chrono::duration<double>(tick - last[r]).count(), heard[r]);
      }
      const double limit = waiting_limit();
      const int64_t longest = *std::max_element(mine.waiting_ms.begin(), mine.waiting_ms.end());
      if (!recorded &&
          static_cast<double>(longest) > 1000 * kRecorded * limit) {  // before the verdict, which ends this process
        record(longest);
        recorded = true;
      }
      if (longest < 1000) recorded = false;
      // Others than rank 0 speak of rank 0's silence one after the other, so that it is said once.
      const double turn = std::min(3.0, 0.5 * pulse.rank());
      const HangLimits limits{.silence_s = kSilence + turn, .starved_s = kStarvedSilence + turn, .waiting_s = limit};
      if (const auto sentence = find_stalled_ranks(heard, pulse.rank(), limits)) end_job(*sentence, longest);
    }
  }

  // Before a silent rank is blamed, it is looked at where that is possible.
  void listen(int rank, double silent_s, PeerState& heard) const {
    const bool starved = silent_s > kSilence && local.wants_to_run(rank);
    if (starved && !heard.starved) {
      std::fprintf(stderr,
                   "%s warning: rank %d has not run for %.0f s, though it wants to: other processes take its core\n",
                   world.prefix().c_str(), rank, silent_s);
    }
    heard.silent_s = silent_s;
    heard.starved = starved;
  }

  void record(int64_t waiting_ms) {
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
        for (const CollectiveRecord& f : log->all()) {
          const double ago = seconds_since(f.begin);
          list.push_back({{"number", f.number},
                          {"kind", f.kind},
                          {"shape", std::vector<int64_t>(f.shape.begin(), f.shape.begin() + f.sides)},
                          {"began_s_ago", ago},
                          {"seconds", f.pending ? ago : std::chrono::duration<double>(f.end - f.begin).count()},
                          {"pending", f.pending}});
        }
        out["collectives"][log->name()] = list;
      }
      std::filesystem::create_directories(run_dir + "/flight");
      io::write_file_atomically(run_dir + "/flight/rank-" + std::to_string(world.rank()) + ".json", out.dump(1) + "\n");
    } catch (const std::exception& e) {
      std::fprintf(stderr, "warning: no flight record is written: %s\n", e.what());
    }
  }

  [[noreturn]] void end_job(const std::string& sentence, int64_t waiting_ms) {
    record(waiting_ms);
    std::fprintf(stderr, "%s error: %s; the last collectives of each rank are in %s/flight\n", world.prefix().c_str(),
                 sentence.c_str(), run_dir.c_str());
    std::this_thread::sleep_for(2 * kTick);  // the others write their records
    world.abort(static_cast<int>(Exit::lost));
  }
};

Watchdog::Watchdog(World& world, std::string run_dir) {
  if (world.size() == 1) return;
  state_ = std::make_unique<State>(world, std::move(run_dir));
  state_->thread = std::thread([s = state_.get()] { s->run(); });
}

Watchdog::~Watchdog() {
  if (!state_) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->end = true;
  }
  state_->ended.notify_all();
  state_->thread.join();
  // An error on this rank: the others do not come to the end of the pulse, the job is about to be ended.
  if (std::uncaught_exceptions() > 0) (void)state_.release();
}

void Watchdog::pace(Pace pace) {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  if (pace == Pace::steps && state_->pace == Pace::slow) state_->steps_since = Clock::now();
  state_->pace = pace;
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
