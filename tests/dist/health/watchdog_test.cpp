// watchdog: the orderly end of heartbeats and watchdogs is collective; their destructors do not communicate.
#include "dist/health/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "dist/health/heartbeat.h"
#include "kernels/base/error.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

constexpr unsigned kDeadline = 30;  // seconds; after it SIGALRM ends this process, and mpirun the others

// `object` of rank 0 is destroyed before the barrier, that of another rank after it: a destructor that waits for the
// other ranks would never return.
template <class T>
void destroy_one_after_the_other(std::optional<T>& object) {
  World& world = test_world();
  alarm(kDeadline);
  if (world.rank() == 0) object.reset();
  world.control().barrier();
  object.reset();
  alarm(0);
}

TEST(HeartbeatChannel, CarriesHeartbeatsAndCloses) {
  World& world = test_world();
  HeartbeatChannel channel;
  Heartbeat mine;
  mine.step = 100 + world.rank();
  channel.send(mine);
  world.control().barrier();
  int received = 0;
  const int expected = world.size() == 1 ? 0 : world.rank() == 0 ? world.size() - 1 : 1;
  for (int turn = 0; turn < 1000 && received < expected; ++turn) {
    for (const auto& [rank, heartbeat] : channel.receive()) {
      EXPECT_EQ(heartbeat.step, 100 + rank);
      ++received;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(received, expected);
  world.control().barrier();  // no rank sends again before every rank has received
  channel.send(mine);         // never received: close() still ends
  alarm(kDeadline);
  channel.close();
  alarm(0);
}

TEST(HeartbeatChannel, ItsDestructorDoesNotCommunicate) {
  std::optional<HeartbeatChannel> channel(std::in_place);
  channel->send({});
  destroy_one_after_the_other(channel);
}

TEST(Watchdog, ItsDestructorDoesNotCommunicate) {
  std::optional<Watchdog> watchdog(std::in_place, test_world(), "unused");
  destroy_one_after_the_other(watchdog);
}

// After an error a rank destroys its watchdog without stop(), and does not block the other ranks.
TEST(Watchdog, AnErrorOfOneRankSkipsStop) {
  World& world = test_world();
  alarm(kDeadline);
  try {
    Watchdog watchdog(world, "unused");
    watchdog.set_phase(Phase::steps);
    watchdog.step_done(1, 0.1);
    if (world.rank() == 0) throw Error(Exit::data, "an error of rank 0");
    world.control().barrier();  // rank 0 reaches it after its destructor
  } catch (const Error&) {
    world.control().barrier();
  }
  alarm(0);
}

TEST(Watchdog, StopsOnAllRanks) {
  alarm(kDeadline);
  Watchdog watchdog(test_world(), "unused");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // two ticks
  watchdog.stop();
  watchdog.stop();  // does nothing
  watchdog.set_phase(Phase::steps);
  alarm(0);
}

}  // namespace
}  // namespace pal::dist
