// wire: a TCP connection to this machine, byte by byte, for requests that a correct client would not send.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace pal::launch {

class Wire {
 public:
  // From 127.0.0.`host`.
  explicit Wire(int port, uint32_t host = 1) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
    bind(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to));
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    open = connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~Wire() { close(socket_); }
  bool send(const std::string& bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // All until the other side ends or `seconds` are over.
  std::string read(double seconds, bool until_close = true) {
    std::string all;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      const double left = std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
      pollfd ready{socket_, POLLIN, 0};
      if (left <= 0 || poll(&ready, 1, static_cast<int>(1000 * left)) <= 0) return all;
      char buffer[65536];
      const ssize_t got = recv(socket_, buffer, sizeof(buffer), 0);
      if (got <= 0) {
        closed = true;
        return all;
      }
      all.append(buffer, static_cast<size_t>(got));
      if (!until_close && all.back() == '}') return all;  // of the JSON behind the headers
    }
  }
  bool open = false, closed = false;

 private:
  const int socket_;
};

inline int status(const std::string& response) { return response.size() > 12 ? std::atoi(response.c_str() + 9) : 0; }

}  // namespace pal::launch
