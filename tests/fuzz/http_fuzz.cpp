// http_fuzz: bytes of a connection to the labeling page: several requests, broken ones, a connection that ends
// anywhere. The server must not crash, no response has status 500, and every response has a status line.
//
// In the input COOKIE stands for a valid session, TICKET for the right to answer query 1. The server is a real one, so
// that the stream with its checks and httplib are tested with the page; label_fuzz tests the page alone, and faster.
// With PAL_FUZZ_ACCEPT set, an input without a response 200 fails.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "launch/embedded.h"
#include "launch/label/server.h"
#include "tests/launch/label/label_page.h"

namespace pal::launch {

const std::vector<Asset>& page_assets() {
  static const std::vector<Asset> assets = {{"/index.html", "text/html", "<!doctype html>"},
                                            {"/app.js", "text/javascript", ";"}};
  return assets;
}

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Never destroyed: at the end of the program its threads still run.
struct Served {
  Served() : server({"127.0.0.1", 0, 2, 2, {8, 64, 64}}), page(nothing, limits()), cookie(page.cookie("bob")) {
    std::thread([this] { server.run(page.page); }).detach();
  }
  static std::shared_ptr<const label::LabelStats> nothing(const oracle::Ledger&) { return nullptr; }
  static PageLimits limits() {
    PageLimits limits;
    limits.answers_per_second = limits.reads_per_second = limits.refusals_per_second = 1e12;
    limits.answers_burst = limits.reads_burst = limits.refusals_burst = 1e12;
    return limits;
  }
  LabelServer server;
  TestPage page;
  std::string cookie;
};

void replace(std::string& text, const std::string& name, const std::string& by) {
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += by.size())
    text.replace(at, name.size(), by);
}

// Sends all, ends its side, and reads to the end. Each connection has an address of its own in 127.0.0.0/8: the ports
// of one address would not last for a minute.
std::string exchange(int port, const std::string& bytes) {
  static uint32_t count = 0;
  const int to = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + count++ % (1 << 20));
  require(bind(to, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  while (connect(to, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) usleep(1000);  // not started yet
  send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(to, SHUT_WR);
  std::string all;
  char buffer[4096];
  for (ssize_t got; (got = recv(to, buffer, sizeof(buffer), 0)) > 0;) all.append(buffer, static_cast<size_t>(got));
  close(to);
  return all;
}

}  // namespace
}  // namespace pal::launch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pal::launch;
  static Served& served = *new Served;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  replace(bytes, "COOKIE", served.cookie);
  replace(bytes, "TICKET", served.page.tokens.ticket("bob", 1));
  const std::string all = exchange(served.server.port(), bytes);
  require(all.empty() || all.rfind("HTTP/1.1 ", 0) == 0);
  require(all.find("HTTP/1.1 500") == std::string::npos && all.find("EXCEPTION") == std::string::npos);
  if (std::getenv("PAL_FUZZ_ACCEPT") != nullptr) require(all.find("HTTP/1.1 200") != std::string::npos);
  const std::lock_guard<std::mutex> lock(served.page.mutex);
  for (const std::string& line : served.page.log) require(line.find_first_of("\r\n") == std::string::npos);
  served.page.log.clear();
  return 0;
}
