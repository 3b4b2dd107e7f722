// label_kill: the page's server is killed with SIGKILL at random moments while people post. Every acknowledged answer
// is in the ledger, once. PAL_KILLS sets how often (10).
//
// The test itself has one thread and forks servers, one after the other, and a process of people, which posts each card
// until it is acknowledged and then writes a byte to a pipe.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "kernels/base/philox.h"
#include "launch/label/server.h"
#include "tests/launch/label/label_page.h"
#include "tests/launch/label/wire.h"

namespace pal::launch {
namespace {

constexpr int kPeople = 4;
constexpr int64_t kGrids = 8000;

std::shared_ptr<const label::LabelStats> no_stats(const oracle::Ledger&) { return nullptr; }

// Writes a byte to `ready` when it has read its questions.
[[noreturn]] void serve(const std::string& folder, int port, int ready) {
  LabelServer server({"127.0.0.1", port, 5, 5, 16});
  PageLimits limits;
  limits.answers_per_second = limits.answers_burst = 1e9;
  TestPage t(no_stats, limits, port, kGrids, folder);
  if (write(ready, "r", 1) != 1) _exit(1);
  server.run(t.page);
  _exit(0);
}

std::string uuid_of(int64_t query) {
  const std::string number = std::to_string(query);
  return std::string(32 - number.size(), '0') + number;
}

// Each person answers every kPeople-th query; a connection for each post, as after a lost one.
[[noreturn]] void post_for_ever(const std::string& folder, int port, const std::string& cookie, int pipe) {
  const label::Tokens tokens(folder + "/secret");
  const std::string host = "127.0.0.1:" + std::to_string(port);
  std::vector<std::thread> people;
  for (int p = 0; p < kPeople; ++p) {
    people.emplace_back([&, p] {
      for (int64_t query = 1 + p; query <= kGrids; query += kPeople) {
        const std::string a = std::to_string(500 + 2 * (query - 1)), b = std::to_string(501 + 2 * (query - 1));
        const std::string body = "{\"uuid\": \"" + uuid_of(query) + "\", \"query\": " + std::to_string(query) +
                                 ", \"ticket\": \"" + tokens.ticket("ann", query) + "\", \"answers\": [[" + a +
                                 ", \"yes\"], [" + b + ", \"no\"]]}";
        const std::string post = "POST /api/answer HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie +
                                 "\r\nOrigin: http://" + host +
                                 "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
                                 std::to_string(body.size()) + "\r\n\r\n" + body;
        for (;;) {
          Wire wire(port);
          if (wire.open && wire.send(post) && status(wire.read(5)) == 200) break;
          usleep(2000);
        }
        if (write(pipe, &query, sizeof(query)) != sizeof(query)) _exit(1);
      }
    });
  }
  for (std::thread& t : people) t.join();
  _exit(0);
}

TEST(LabelKilled, EveryAcknowledgedAnswerIsRecordedOnce) {
  const char* asked = std::getenv("PAL_KILLS");
  const int kills = asked == nullptr ? 10 : std::atoi(asked);
  const uint64_t seed = static_cast<uint64_t>(getpid());
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed, Purpose::bench);
  const TestFolder folder;
  const std::string path = folder.path().string();
  const int port = [] { return LabelServer({"127.0.0.1", 0}).port(); }();
  const std::string cookie = [&] {
    TestPage t(no_stats, {}, port, kGrids, path);  // asks all questions
    return t.cookie("ann");
  }();
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t people = fork();
  if (people == 0) post_for_ever(path, port, cookie, pipes[1]);
  close(pipes[1]);
  int64_t moments = 0;
  for (int k = 0; k < kills; ++k) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t server = fork();
    if (server == 0) serve(path, port, ready[1]);
    close(ready[1]);
    char byte = 0;
    if (k % 8 != 7) {  // every eighth is killed while it starts
      EXPECT_EQ(read(ready[0], &byte, 1), 1);
    }
    close(ready[0]);
    usleep(static_cast<useconds_t>(random.below(200000)));
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
    ++moments;
  }
  kill(people, SIGKILL);
  waitpid(people, nullptr, 0);
  std::set<int64_t> acknowledged;
  for (int64_t query = 0; read(pipes[0], &query, sizeof(query)) == sizeof(query);)
    EXPECT_TRUE(acknowledged.insert(query).second);
  close(pipes[0]);
  oracle::Ledger ledger(folder / "ledger.sqlite", "run");
  std::map<int64_t, int> recorded;  // answers by query
  for (const oracle::RecordedAnswer& r : ledger.all_answers()) {
    EXPECT_EQ(r.superseded_by, 0);
    EXPECT_EQ(r.said, r.answer.j % 2 == 0 ? "yes" : "no");
    ++recorded[r.answer.query];
  }
  for (const auto& [query, count] : recorded) EXPECT_EQ(count, 2) << "a card is recorded as a whole, once: " << query;
  for (const int64_t query : acknowledged) EXPECT_TRUE(recorded.count(query)) << "acknowledged and lost: " << query;
  EXPECT_GE(static_cast<int64_t>(acknowledged.size()), moments) << "all people could answer";
  EXPECT_LE(recorded.size() - acknowledged.size(), static_cast<size_t>(kPeople)) << "each waits for one answer at most";
  std::printf("%zu cards acknowledged, %ld kills\n", acknowledged.size(), static_cast<long>(moments));
}

}  // namespace
}  // namespace pal::launch
