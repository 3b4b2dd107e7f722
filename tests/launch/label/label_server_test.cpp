// label_server: the page on a real socket: deadlines, sizes, broken requests, many at once.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launch/label/connections.h"
#include "launch/label/server.h"
#include "tests/launch/label/label_page.h"
#include "tests/launch/label/wire.h"

namespace pal::launch {
namespace {

std::shared_ptr<const label::LabelStats> nothing_known(const oracle::Ledger&) { return nullptr; }

class LabelServerTest : public testing::Test {
 protected:
  explicit LabelServerTest(double seconds = 1)
      : server({"127.0.0.1", 0, seconds, seconds, {64, 16, 32}}),
        t(nothing_known, {}, server.port(), 200),
        thread([this] { server.run(t.page); }) {
    host = "127.0.0.1:" + std::to_string(server.port());
    cookie = t.cookie("ann");
    while (status(Wire(server.port()).send("") ? ask("GET / HTTP/1.1\r\n") : "") != 200) usleep(10000);
  }
  ~LabelServerTest() override {
    server.stop();
    thread.join();
  }
  std::string headers() const {
    return "Host: " + host + "\r\nCookie: " + cookie + "\r\nOrigin: http://" + host +
           "\r\nContent-Type: application/json\r\n";
  }
  std::string ask(const std::string& line, const std::string& body = "", const std::string& more = "") {
    Wire wire(server.port());
    const std::string length =
        line.rfind("POST", 0) == 0 ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : "";
    wire.send(line + headers() + more + length + "Connection: close\r\n\r\n" + body);
    return wire.read(5);
  }

  LabelServer server;
  TestPage t;
  std::thread thread;
  std::string host, cookie;
};

TEST_F(LabelServerTest, AnswersOverOneConnection) {
  Wire wire(server.port());
  for (int k = 1; k <= 20; ++k) {
    const std::string body = t.card("ann", k, std::string(30, 'a') + std::to_string(10 + k));
    wire.send("POST /api/answer HTTP/1.1\r\n" + headers() + "Content-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
    EXPECT_EQ(status(wire.read(5, false)), 200) << k;
  }
  EXPECT_EQ(t.ledger.all_answers().size(), 40u);
}

TEST_F(LabelServerTest, TooLargeAndBrokenRequests) {
  EXPECT_EQ(status(ask("POST /api/answer HTTP/1.1\r\n", std::string(kLongestBody + 1, 'x'))), 413);
  EXPECT_EQ(status(ask("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n")), 414);
  EXPECT_EQ(status(ask("GET /..%2f..%2fetc/passwd HTTP/1.1\r\n")), 404);
  EXPECT_EQ(status(ask("GET /../../etc/passwd HTTP/1.1\r\n")), 404);
  EXPECT_EQ(status(ask("POST /api/other HTTP/1.1\r\n", "{}")), 404);
  EXPECT_EQ(status(ask("DELETE /api/answer HTTP/1.1\r\n")), 405);
  EXPECT_EQ(status(ask("HELLO\r\n")), 400);
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\n", "", "X: " + std::string(20000, 'y') + "\r\n")), 400);
  // Line ends in a path do not become headers of the answer.
  const std::string split = ask("GET /x%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\n");
  EXPECT_EQ(status(split), 404);
  EXPECT_EQ(split.find("Set-Cookie"), std::string::npos);
  // Bytes after a request that was refused are not read as another request.
  const std::string hidden = "GET /api/mine HTTP/1.1\r\n" + headers() + "\r\n";
  const auto post = [&](const std::string& path, size_t length) {
    return "POST " + path + " HTTP/1.1\r\n" + headers() + "Content-Length: " + std::to_string(length) + "\r\n\r\n";
  };
  for (const std::string& refused :
       {post("/api/none", hidden.size()), post("/api/answer", kLongestBody + 1), std::string("HELLO\r\n"),
        "GET / HTTP/1.1\r\nX: " + std::string(9000, 'y') + "\r\n\r\n"}) {
    Wire wire(server.port());
    wire.send(refused + hidden);
    const std::string all = wire.read(3);
    EXPECT_EQ(all.find("HTTP/1.1", 5), std::string::npos) << all;
    EXPECT_TRUE(wire.closed);
  }
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\n")), 200) << "the server still answers";
}

TEST_F(LabelServerTest, OnlyAPostHasABodyAndOfOneLength) {
  const std::string hidden = "GET /api/mine HTTP/1.1\r\n" + headers() + "\r\n";
  const std::string length = "Content-Length: " + std::to_string(hidden.size()) + "\r\n";
  const std::string card = t.card("ann", 1, std::string(32, 'a'));
  for (const std::string& twice :
       {"GET /api/standing HTTP/1.1\r\n" + headers() + length + "\r\n" + hidden,
        "HEAD / HTTP/1.1\r\n" + headers() + length + "\r\n" + hidden,
        "GET / HTTP/1.1\r\nHost: other\r\n" + headers() + "\r\n" + hidden,
        "GET / HTTP/1.1\r\n" + headers() + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
        "POST /api/answer HTTP/1.1\r\n" + headers() + "Content-Length: " + std::to_string(card.size()) +
            "\r\nTransfer-Encoding: chunked\r\n\r\n" + card + hidden,
        "POST /api/answer HTTP/1.1\r\n" + headers() +
            "Content-Length: 4\r\nContent-Length: " + std::to_string(card.size()) + "\r\n\r\n" + card + hidden}) {
    Wire wire(server.port());
    wire.send(twice);
    const std::string all = wire.read(3);
    EXPECT_EQ(status(all), 400) << twice << all;
    EXPECT_EQ(all.find("HTTP/1.1", 5), std::string::npos) << all;
    EXPECT_TRUE(wire.closed);
  }
  EXPECT_TRUE(t.ledger.all_answers().empty());
}

// A proxy that reads another size takes a part of the chunk for the next request.
TEST_F(LabelServerTest, BodiesInChunksAreRefused) {
  const std::string hidden = "GET /api/mine HTTP/1.1\r\n" + headers() + "\r\n";
  const std::string card = t.card("ann", 1, std::string(32, 'a'));
  const std::string size = fmt::format("{:x}", card.size());
  for (const std::string& written : {size, "0x" + size, "+" + size, " " + size, size + ";a=b", size + " 5",
                                     "00000000000000000000" + size, std::string("-1"), std::string("ffffffffffffffff"),
                                     std::string("1ffffffffffffffff"), std::string("g"), std::string()}) {
    Wire wire(server.port());
    wire.send("POST /api/answer HTTP/1.1\r\n" + headers() + "Transfer-Encoding: chunked\r\n\r\n" + written + "\r\n" +
              card + "\r\n0\r\n\r\n" + hidden);
    const std::string all = wire.read(3);
    EXPECT_EQ(status(all), 400) << written << all;
    EXPECT_EQ(all.find("HTTP/1.1", 5), std::string::npos) << written << all;
    EXPECT_TRUE(wire.closed);
  }
  EXPECT_TRUE(t.ledger.all_answers().empty());
}

// Lines that httplib skips, and in which a proxy may read the length of a body.
TEST_F(LabelServerTest, AnAmbiguousHeadIsRefused) {
  const std::string hidden = "GET /api/mine HTTP/1.1\r\n" + headers() + "\r\n", size = std::to_string(hidden.size());
  for (const std::string& line :
       {"Content-Length : " + size, "Content-Length\t: " + size, " Content-Length: " + size,
        "X: y\r\n Content-Length: " + size, "Content-Length:\r\n " + size, "X: y\nContent-Length: " + size,
        "X: y\rContent-Length: " + size, std::string("Transfer-Encoding : chunked"), std::string("Content-Length"),
        ": " + size}) {
    Wire wire(server.port());
    wire.send("GET /api/standing HTTP/1.1\r\n" + headers() + line + "\r\n\r\n" + hidden);
    const std::string all = wire.read(3);
    EXPECT_EQ(status(all), 400) << line << all;
    EXPECT_EQ(all.find("HTTP/1.1", 5), std::string::npos) << line << all;
    EXPECT_TRUE(wire.closed);
  }
  for (const char* length : {"+2", "2 2", "0x2", "-2"}) {
    Wire wire(server.port());
    wire.send("POST /api/answer HTTP/1.1\r\n" + headers() + "Content-Length: " + length + "\r\n\r\n{}" + hidden);
    EXPECT_EQ(status(wire.read(3)), 400) << length;
    EXPECT_TRUE(wire.closed);
  }
}

// After "100 Continue" a refusal closes the connection, too: its body may be unread.
TEST_F(LabelServerTest, ARefusalAfterContinueCloses) {
  const std::string hidden = "GET /api/mine HTTP/1.1\r\n" + headers() + "\r\n";
  Wire wire(server.port());
  wire.send("POST /api/answer HTTP/1.1\r\n" + headers() + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}" +
            hidden);
  const std::string all = wire.read(3);
  EXPECT_NE(all.find("HTTP/1.1 400"), std::string::npos) << all;
  EXPECT_EQ(all.find("HTTP/1.1 200"), std::string::npos) << all;
  EXPECT_TRUE(wire.closed);
}

TEST_F(LabelServerTest, ManyRangesDoNotMultiplyAFile) {
  std::string ranges = "Range: bytes=0-";
  for (int k = 0; k < 500; ++k) ranges += ",0-";
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\n" + ranges + "\r\n")), 400);
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\nRange: bytes=0-4\r\n")), 400);
}

TEST_F(LabelServerTest, OnlyJsonIsRead) {
  for (const char* type : {"multipart/form-data; boundary=x", "multipart/form-data", "text/plain",
                           "application/x-www-form-urlencoded", ""}) {
    for (const bool session : {true, false}) {
      Wire wire(server.port());
      wire.send("POST /api/answer HTTP/1.1\r\nHost: " + host + "\r\nOrigin: http://" + host + "\r\n" +
                (session ? "Cookie: " + cookie + "\r\n" : "") + "Content-Type: " + type +
                "\r\nContent-Length: 9\r\n\r\n--x--\r\n\r\n");
      const std::string all = wire.read(3);
      EXPECT_EQ(status(all), session ? 415 : 401) << type << all;
      EXPECT_EQ(all.find("EXCEPTION"), std::string::npos) << all;
      EXPECT_EQ(all.find("Set-Cookie"), std::string::npos) << all;
      EXPECT_TRUE(wire.closed);
    }
  }
}

class LabelPatientServerTest : public LabelServerTest {
 protected:
  LabelPatientServerTest() : LabelServerTest(60) {}
};

TEST_F(LabelPatientServerTest, ManySlowSocketsOfOneAddressLeaveRoomForOthers) {
  std::vector<std::unique_ptr<Wire>> slow;
  for (int k = 0; k < 200; ++k) {
    slow.push_back(std::make_unique<Wire>(server.port(), 2));
    slow.back()->send("GET / HTTP/1.1\r\nHost: ");
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\n")), 200);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
  Wire another(server.port(), 2);
  EXPECT_EQ(status(another.read(5)), 503);
  EXPECT_TRUE(another.closed);
  std::string last;
  {
    const std::lock_guard<std::mutex> lock(t.mutex);
    for (const std::string& line : t.log) last += line.find("127.0.0.2") != std::string::npos ? line + "\n" : "";
  }
  EXPECT_EQ(last, "refused 503 CONNECT - from 127.0.0.2: this address has 32 connections open: close some\n");
}

TEST_F(LabelServerTest, SlowConnectionsAreClosed) {
  const auto start = std::chrono::steady_clock::now();
  Wire silent(server.port()), header(server.port()), body(server.port());
  header.send("GET / HTTP/1.1\r\nHost: ");
  body.send("POST /api/answer HTTP/1.1\r\n" + headers() + "Content-Length: 1000\r\n\r\n{");
  for (int k = 0; k < 6; ++k) {  // also when a byte arrives now and then
    usleep(250000);
    header.send("a");
    body.send(" ");
  }
  EXPECT_EQ(status(body.read(3)), 408);
  header.read(3);
  silent.read(3);
  EXPECT_TRUE(silent.closed && header.closed && body.closed);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 4);
}

TEST_F(LabelServerTest, NoAnswerOfManyAtOnceIsLost) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int p = 0; p < 8; ++p) {
    threads.emplace_back([&, p] {
      for (int k = 0; k < 5; ++k) {
        const int query = 1 + 5 * p + k;
        good += status(ask("POST /api/answer HTTP/1.1\r\n",
                           t.card("ann", query, std::string(29, 'b') + std::to_string(100 + query)))) == 200;
      }
    });
  }
  for (std::thread& th : threads) th.join();
  EXPECT_EQ(good, 40);
  EXPECT_EQ(t.ledger.all_answers().size(), 80u);
}

TEST(LabelServer, ConnectionsOfOneNetworkOfIPv6AreCountedTogether) {
  Connections connections({0, 10, 2}, [](socket_t) {});
  const std::string many = "this address has 2 connections open: close some";
  for (const char* address : {"2001:db8::1", "2001:db8::2"}) EXPECT_EQ(connections.admit(-1, address), "") << address;
  EXPECT_EQ(connections.admit(-1, "2001:db8::ffff:3"), many);
  EXPECT_EQ(connections.admit(-1, "2001:db8:0:1::1"), "");
  for (const char* address : {"10.0.0.1", "::ffff:10.0.0.1"}) EXPECT_EQ(connections.admit(-1, address), "") << address;
  EXPECT_EQ(connections.admit(-1, "10.0.0.1"), many);
  EXPECT_EQ(connections.admit(-1, "::ffff:10.0.0.2"), "");
}

TEST(LabelServer, APortInUseGivesASentence) {
  const LabelServer first({"127.0.0.1", 0});
  try {
    LabelServer({"127.0.0.1", first.port()});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage);
    EXPECT_NE(std::string(e.what()).find("--port"), std::string::npos) << e.what();
  }
  EXPECT_THROW(LabelServer({"no.such.address.example", 0}), Error);
}

}  // namespace
}  // namespace pal::launch
