#include "launch/label/server.h"

#include <httplib.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "kernels/base/error.h"

namespace pal::launch {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// A connection whose reads and writes end at a deadline.
class TimedStream final : public httplib::Stream {
 public:
  TimedStream(socket_t socket, double seconds) : socket_(socket), seconds_(seconds) {}

  // Whether a byte arrives within `seconds`, while `open`; the deadline of the request starts then.
  template <class Open>
  bool begins(double seconds, const Open& open) {
    const Clock::time_point end = after(seconds);
    bool there = false;
    while (!there && open() && Clock::now() < end) {
      deadline_ = std::min(end, after(0.1));
      there = wait(POLLIN);
    }
    deadline_ = after(seconds_);
    answering_ = refused_ = false;
    return there;
  }
  bool refused() const { return refused_; }

  bool is_readable() const override { return wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }
  ssize_t read(char* data, size_t size) override { return wait(POLLIN) ? recv(socket_, data, size, 0) : -1; }
  ssize_t write(const char* data, size_t size) override {
    if (!answering_) {
      deadline_ = after(seconds_);             // the response has a deadline of its own
      refused_ = size > 10 && data[9] >= '4';  // "HTTP/1.1 4": the rest of its body may be unread
      answering_ = true;
    }
    return wait(POLLOUT) ? send(socket_, data, size, MSG_NOSIGNAL) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { name(ip, port, getpeername); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { name(ip, port, getsockname); }
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short what) const {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      if (left <= 0) return false;
      pollfd ready{socket_, what, 0};
      const int count = poll(&ready, 1, static_cast<int>(left));
      if (count > 0) return true;
      if (count < 0 && errno != EINTR) return false;
    }
  }
  template <class Of>
  void name(std::string& ip, int& port, Of of) const {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    char host[NI_MAXHOST], service[NI_MAXSERV];
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (of(socket_, generic, &size) != 0) return;
    if (getnameinfo(generic, size, host, sizeof(host), service, sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return;
    ip = host;
    port = std::atoi(service);
  }

  const socket_t socket_;
  const double seconds_;
  Clock::time_point deadline_;
  bool answering_ = false, refused_ = false;
};

PageRequest as_page_request(const httplib::Request& r) {
  PageRequest request{r.method, r.path};
  for (const auto& [name, value] : r.params) request.parameters.emplace(name, value);
  request.host = r.get_header_value("Host");
  request.origin = r.get_header_value("Origin");
  request.cookie = r.get_header_value("Cookie");
  request.content_type = r.get_header_value("Content-Type");
  request.address = r.remote_addr;
  return request;
}

void set_response(const PageResponse& from, httplib::Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  to.set_content(from.body, from.type);
}

}  // namespace

class LabelServer::Http final : public httplib::Server {
 public:
  explicit Http(const ServerOptions& options) : options_(options) {
    new_task_queue = [this] { return new httplib::ThreadPool(static_cast<size_t>(options_.threads)); };
    set_payload_max_length(kLongestBody);
    set_keep_alive_max_count(1000);
    set_tcp_nodelay(true);
    // Without SO_REUSEPORT: with it, two servers could share a port unnoticed.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    errno = 0;
    port_ = options.port == 0                          ? bind_to_any_port(options.bind)
            : bind_to_port(options.bind, options.port) ? options.port
                                                       : -1;
    PAL_CHECK(port_ > 0, "cannot listen at " + options.bind + ":" + std::to_string(options.port),
              errno == 0 ? "no such address" : std::strerror(errno),
              errno == EADDRINUSE ? "another program uses the port: choose another --port"
              : errno == EACCES   ? "ports below 1024 need the administrator's rights: choose another --port"
                                  : "choose another --port or --bind");
  }

  ~Http() override {  // a server that never ran still holds the port
    if (const socket_t socket = svr_sock_.exchange(INVALID_SOCKET); socket != INVALID_SOCKET) close(socket);
  }

  void serve(LabelPage& page) {
    // A request without a body is answered at once; the body of a post is read first, if its path is known.
    set_pre_routing_handler([&page](const httplib::Request& request, httplib::Response& response) {
      if (request.method == "POST") return HandlerResponse::Unhandled;
      set_response(page.handle(as_page_request(request)), response);
      return HandlerResponse::Handled;
    });
    Post("/api/(answer|undo|settle)",
         [&page](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& read) {
           PageRequest asked = as_page_request(request);
           const bool whole = read([&](const char* data, size_t size) {
             asked.body.append(data, size);
             return asked.body.size() <= kLongestBody;
           });
           if (whole) return set_response(page.handle(asked), response);
           const bool large = asked.body.size() > kLongestBody || response.status == 413;
           set_response(large ? page.refusal(asked, 413, "a post has at most 64 KiB")
                              : page.refusal(asked, 408, "the body did not arrive in time"),
                        response);
         });
    // Responses that httplib makes itself (a malformed line, an unknown path) get the page's headers, and are logged.
    set_error_handler(HandlerWithResponse([&page](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return HandlerResponse::Unhandled;
      PageRequest asked = as_page_request(request);
      const int status = response.status;
      PageResponse refused = status == 404 || status < 400 ? page.handle(asked)
                                                           : page.refusal(asked, status, "this request cannot be read");
      set_response(refused, response);
      return HandlerResponse::Handled;
    }));
    listen_after_bind();
    ended_ = true;
  }

  // stop() has no effect before the server has started.
  void end() {
    while (!is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop();
  }

  int port() const { return port_; }

 private:
  bool process_and_close_socket(socket_t socket) override {
    TimedStream stream(socket, options_.request_seconds);
    bool closed = false, good = true;
    while (!closed && good && stream.begins(options_.idle_seconds, [this] { return svr_sock_ != INVALID_SOCKET; })) {
      good = process_request(stream, false, closed, nullptr);
      closed = closed || stream.refused();
    }
    shutdown(socket, SHUT_RDWR);
    close(socket);
    return good;
  }

  const ServerOptions options_;
  int port_ = -1;
  std::atomic<bool> ended_{false};
};

LabelServer::LabelServer(const ServerOptions& options) : http_(std::make_unique<Http>(options)) {}
LabelServer::~LabelServer() = default;
int LabelServer::port() const { return http_->port(); }
void LabelServer::run(LabelPage& page) { http_->serve(page); }
void LabelServer::stop() { http_->end(); }

}  // namespace pal::launch
