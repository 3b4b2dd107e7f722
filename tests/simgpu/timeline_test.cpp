// timeline: late work runs when it is waited for and not before, together with the work that must precede it.
#include "tests/simgpu/runtime/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "tests/simgpu/runtime/fair_mutex.h"

namespace simgpu {
namespace {

struct Log {
  std::string text;
  std::function<void()> write(char c) {
    return [this, c] { text += c; };
  }
  bool before(char a, char b) const { return text.find(a) < text.find(b); }
};

// A thread that waits for a stream gives the mutex away and takes it again at once.
TEST(FairMutex, AThreadThatWaitsGetsItFirst) {
  FairMutex mutex;
  for (int turn = 0; turn < 100; ++turn) {
    mutex.lock();
    std::atomic<bool> had{false};
    std::thread other([&] {
      const std::lock_guard<FairMutex> lock(mutex);
      had = true;
    });
    while (mutex.waiting() == 0) std::this_thread::yield();
    mutex.unlock();
    mutex.lock();
    EXPECT_TRUE(had) << "turn " << turn;
    mutex.unlock();
    other.join();
  }
}

TEST(Timeline, ModeNowRunsAtOnce) {
  Timeline timeline(StreamMode::now, 0);
  Log log;
  timeline.add(timeline.default_stream(), log.write('a'));
  EXPECT_EQ(log.text, "a");
}

TEST(Timeline, LateWaitsAndKeepsTheOrderOfAStream) {
  Timeline timeline(StreamMode::late, 0);
  Stream& stream = timeline.create(StreamKind::non_blocking);
  Log log;
  timeline.add(stream, log.write('a'));
  const WorkRef b = timeline.add(stream, log.write('b'));
  timeline.add(stream, log.write('c'));
  EXPECT_EQ(log.text, "");
  timeline.finish(b);
  EXPECT_EQ(log.text, "ab");
  timeline.finish(stream.last);
  EXPECT_EQ(log.text, "abc");
}

TEST(Timeline, StreamsDoNotWaitForEachOtherWithoutAnEvent) {
  Timeline timeline(StreamMode::late, 0);
  Stream &one = timeline.create(StreamKind::non_blocking), &two = timeline.create(StreamKind::non_blocking);
  Log log;
  timeline.add(one, log.write('a'));
  const WorkRef event = timeline.add(one, log.write('e'));
  timeline.add(one, log.write('z'));
  timeline.add(two, log.write('b'));
  timeline.finish(two.last);
  EXPECT_EQ(log.text, "b");
  timeline.order(two, event);
  timeline.add(two, log.write('c'));
  timeline.finish(two.last);
  EXPECT_EQ(log.text, "baec");
}

// The legacy default stream waits for the blocking streams, and they for it; non-blocking ones do not.
TEST(Timeline, DefaultStream) {
  Timeline timeline(StreamMode::late, 0);
  Stream &blocking = timeline.create(StreamKind::blocking), &free = timeline.create(StreamKind::non_blocking);
  Log log;
  timeline.add(blocking, log.write('a'));
  timeline.add(free, log.write('x'));
  timeline.add(timeline.default_stream(), log.write('b'));
  timeline.add(blocking, log.write('c'));
  timeline.finish(blocking.last);
  EXPECT_EQ(log.text, "abc");
}

TEST(Timeline, PollingEnds) {
  Timeline timeline(StreamMode::late, 0);
  Stream& stream = timeline.create(StreamKind::blocking);
  Log log;
  timeline.add(stream, log.write('a'));
  const WorkRef b = timeline.add(stream, log.write('b'));
  int polls = 0;
  while (!timeline.query(b)) ++polls;
  EXPECT_EQ(polls, 2);
  EXPECT_EQ(log.text, "ab");
}

TEST(Timeline, AllStreamsInAnOrderOfTheSeed) {
  std::vector<std::string> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Timeline timeline(StreamMode::late, seed);
    Stream &one = timeline.create(StreamKind::non_blocking), &two = timeline.create(StreamKind::non_blocking);
    Log log;
    timeline.add(one, log.write('a'));
    timeline.add(one, log.write('b'));
    timeline.add(two, log.write('c'));
    timeline.destroy(one);  // its work stays
    EXPECT_FALSE(timeline.knows(&one));
    timeline.finish_all();
    ASSERT_EQ(log.text.size(), 3u) << "seed " << seed;
    EXPECT_TRUE(log.before('a', 'b'));
    seen.push_back(log.text);
  }
  EXPECT_TRUE(std::count(seen.begin(), seen.end(), "abc") > 0 && std::count(seen.begin(), seen.end(), "cab") > 0);
}

// What must precede a piece is done in an order of the seed: without a wait between two streams, either may be first.
TEST(Timeline, PredecessorsInAnOrderOfTheSeed) {
  std::vector<std::string> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Timeline timeline(StreamMode::late, seed);
    Stream &user = timeline.create(StreamKind::non_blocking), &channel = timeline.create(StreamKind::non_blocking);
    Log log;
    timeline.add(user, log.write('u'));
    const WorkRef sent = timeline.add(channel, log.write('c'));
    timeline.order(user, sent);  // the user stream waits for the channel stream, but not the other way around
    timeline.finish(timeline.add(user, log.write('e')));
    seen.push_back(log.text);
  }
  EXPECT_GT(std::count(seen.begin(), seen.end(), "uce"), 0);
  EXPECT_GT(std::count(seen.begin(), seen.end(), "cue"), 0);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "uce") + std::count(seen.begin(), seen.end(), "cue"), 20);
}

// Work that waits for another process does not block the other streams: that process may wait for them.
TEST(Timeline, OtherStreamsContinueWhileWorkWaits) {
  Timeline timeline(StreamMode::late, 0);
  Stream &one = timeline.create(StreamKind::non_blocking), &two = timeline.create(StreamKind::non_blocking);
  bool released = false;
  const WorkRef waits = timeline.add_polled(one, [&] { return released; });
  timeline.add(two, [&] { released = true; });
  timeline.finish(waits);
  EXPECT_TRUE(waits->done);
}

TEST(Timeline, ManyPiecesInARow) {
  Timeline timeline(StreamMode::late, 0);
  int64_t sum = 0;
  for (int i = 0; i < 100'000; ++i) timeline.add(timeline.default_stream(), [&] { ++sum; });
  timeline.finish_all();
  EXPECT_EQ(sum, 100'000);
}

}  // namespace
}  // namespace simgpu
