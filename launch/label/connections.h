// connections: accepted sockets and the threads that serve them: a limit for each address, and a bounded queue.
//
// httplib hands every accepted socket to enqueue(), which calls back on the accepting thread: the server then gives the
// socket to admit(). A socket above a limit is answered with 503 and closed at once, so that an address with many slow
// sockets leaves threads and places in the queue to the others.
// Thread: enqueue() and admit() on the accepting thread; serve() on the pool's threads.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "launch/label/server.h"

namespace pal::launch {

class Connections final : public httplib::TaskQueue {
 public:
  using Serve = std::function<void(socket_t)>;  // serves and closes the socket
  Connections(const ConnectionLimits& limits, Serve serve) : limits_(limits), serve_(std::move(serve)) {
    for (size_t k = 0; k < limits.threads; ++k) threads_.emplace_back([this] { work(); });
  }

  void enqueue(std::function<void()> accepted) override { accepted(); }

  // "": a thread will serve the socket. Otherwise the sentence why not; the socket stays the caller's.
  std::string admit(socket_t socket, const std::string& address) {
    const std::string network = network_of(address);
    const std::lock_guard<std::mutex> lock(mutex_);
    // Threads that are about to take a socket count as well: by waiting_ alone a burst would be refused.
    if (open_ >= limits_.threads + limits_.waiting) return "too many connections wait: try again in a second";
    size_t& of_this = of_network_[network];
    if (of_this >= limits_.per_address)
      return "this address has " + std::to_string(limits_.per_address) + " connections open: close some";
    ++of_this;
    ++open_;
    waiting_.emplace_back(socket, network);
    changed_.notify_one();
    return "";
  }

  void shutdown() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto [socket, network] = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      serve_(socket);
      lock.lock();
      --open_;
      if (--of_network_[network] == 0) of_network_.erase(network);
    }
  }

  const ConnectionLimits limits_;
  const Serve serve_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<socket_t, std::string>> waiting_;
  std::map<std::string, size_t> of_network_;
  size_t open_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pal::launch
