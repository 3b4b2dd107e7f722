// server: the labeling page on a socket, by cpp-httplib: one thread a connection, a deadline for every request.
//
// A request must be complete within `request_seconds`, however slowly its bytes arrive. A connection without a request
// is closed after `idle_seconds`, and after a refusal at once. Only a post has a body, of one length and not in chunks,
// and only JSON is read. Methods, paths, parameters and five headers reach the page.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "launch/label/page.h"

namespace pal::launch {

struct ConnectionLimits {
  size_t threads = 128;     // connections that are served at a time
  size_t waiting = 128;     // that wait for a thread
  size_t per_address = 64;  // of one network_of(), served or waiting
};

struct ServerOptions {
  std::string bind = "127.0.0.1";
  int port = 8765;  // 0: any free one
  double request_seconds = 10, idle_seconds = 5;
  ConnectionLimits connections = {};
};

class LabelServer {
 public:
  // Binds the port. Throws Error (usage) when it is in use or not permitted.
  explicit LabelServer(const ServerOptions& options);
  ~LabelServer();
  LabelServer(const LabelServer&) = delete;
  LabelServer& operator=(const LabelServer&) = delete;

  int port() const;
  void run(LabelPage& page);  // until stop()
  void stop();                // from any thread, once run() was or will be called

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

}  // namespace pal::launch
