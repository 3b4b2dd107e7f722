#include "launch/label/server.h"

#include <httplib.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/label/rate_limit.h"
#include "kernels/base/error.h"
#include "launch/label/connections.h"

namespace pal::launch {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// The head of a request, byte by byte: lines that end with CR LF, each "name: value". httplib skips other lines, but a
// proxy before it may read a length of the body in one, and what follows then belongs to another request.
class HeadCheck {
 public:
  // Whether the byte may come next; after the head any may.
  bool takes(char c) {
    const bool after_return = std::exchange(return_, c == '\r');
    if (state_ == State::body) return true;
    if (c == '\n') {
      if (!after_return || state_ == State::name) return false;
      state_ = state_ == State::empty ? State::body : State::start;
      return true;
    }
    if (after_return || c == '\0') return false;
    if (state_ == State::start && c == '\r') {
      state_ = State::empty;
    } else if (state_ == State::start || state_ == State::name) {
      const bool name =
          std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("!#$%&'*+-.^_`|~", c) != nullptr;
      if (!name && (c != ':' || state_ == State::start)) return false;
      state_ = name ? State::name : State::value;
    }
    return true;
  }

 private:
  enum class State { value, start, name, empty, body };  // value: the first line too
  State state_ = State::value;
  bool return_ = false;
};

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
    head_ = {};
    return there;
  }
  bool refused() const { return refused_; }

  bool is_readable() const override { return wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }
  ssize_t read(char* data, size_t size) override {
    const ssize_t got = wait(POLLIN) ? recv(socket_, data, size, 0) : -1;
    return std::all_of(data, data + std::max<ssize_t>(got, 0), [this](char c) { return head_.takes(c); }) ? got : -1;
  }
  ssize_t write(const char* data, size_t size) override {
    if (!answering_ && size > 10 && data[9] != '1') {  // "HTTP/1.1 100": the response comes after the body
      deadline_ = after(seconds_);                     // the response has a deadline of its own
      refused_ = data[9] >= '4';                       // "HTTP/1.1 4": the rest of its body may be unread
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
  HeadCheck head_;
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

// "": the request has one host, a body where one belongs, and its end is in no doubt. What follows an ambiguous end
// would be taken for the next request of the connection, which behind a proxy may be another person's. Bodies in chunks
// are not read: httplib takes sizes such as "+5", "0x5" or "5 6", in which a proxy may see another size.
std::string wrong_head(const httplib::Request& r) {
  const size_t lengths = r.get_header_value_count("Content-Length");
  const std::string length = r.get_header_value("Content-Length");
  if (r.get_header_value_count("Host") > 1) return "the host is given twice";
  if (lengths > 1) return "the length of the body is given twice";
  if (r.has_header("Transfer-Encoding")) return "a body in chunks is not read: give its Content-Length";
  if (r.method != "POST" && lengths == 1 && length != "0") return "only a post has a body";
  if (length.find_first_not_of("0123456789") != std::string::npos) return "the length of the body is not a number";
  if (!r.ranges.empty()) return "parts of a file are not served";  // thousands of ranges would make a huge response
  return "";
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
    new_task_queue = [this] {
      return connections_ = new Connections(options_.connections, [this](socket_t socket) { serve_socket(socket); });
    };
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
    ::listen(svr_sock_, SOMAXCONN);  // httplib's own 5 make others wait a second each when many connect at once
  }

  ~Http() override {  // a server that never ran still holds the port
    if (const socket_t socket = svr_sock_.exchange(INVALID_SOCKET); socket != INVALID_SOCKET) close(socket);
  }

  void serve(LabelPage& page) {
    page_ = &page;
    // A request without a body is answered at once; of a post the body is read first, if it is JSON for a known path.
    set_pre_routing_handler([&page](const httplib::Request& request, httplib::Response& response) {
      const PageRequest asked = as_page_request(request);
      if (const std::string wrong = wrong_head(request); !wrong.empty())
        set_response(page.refusal(asked, 400, wrong), response);
      else if (request.method == "POST" && is_json(asked))
        return HandlerResponse::Unhandled;
      else
        set_response(page.handle(asked), response);
      return HandlerResponse::Handled;
    });
    set_exception_handler([&page](const httplib::Request& request, httplib::Response& response, std::exception_ptr) {
      set_response(page.refusal(as_page_request(request), 500, "this request failed in the server"), response);
    });
    Post("/api/(enter|answer|undo|settle)",
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
  // On the accepting thread.
  bool process_and_close_socket(socket_t socket) override {
    PageRequest asked{"CONNECT", "-"};
    int port = 0;
    TimedStream(socket, 0).get_remote_ip_and_port(asked.address, port);
    const std::string wrong = connections_->admit(socket, asked.address);
    if (wrong.empty()) return true;
    const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    if (logged_.allow(network_of(asked.address), now)) page_->refusal(asked, 503, wrong);
    const std::string response =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: text/plain\r\n"
        "Content-Length: " +
        std::to_string(wrong.size() + 1) + "\r\n\r\n" + wrong + "\n";
    send(socket, response.data(), response.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    end_socket(socket);
    return false;
  }

  void serve_socket(socket_t socket) {
    TimedStream stream(socket, options_.request_seconds);
    bool closed = false, good = true;
    while (!closed && good && stream.begins(options_.idle_seconds, [this] { return svr_sock_ != INVALID_SOCKET; })) {
      good = process_request(stream, false, closed, nullptr);
      closed = closed || stream.refused();
    }
    end_socket(socket);
  }

  static void end_socket(socket_t socket) {
    shutdown(socket, SHUT_RDWR);
    close(socket);
  }

  const ServerOptions options_;
  Connections* connections_ = nullptr;  // httplib's, while it runs
  LabelPage* page_ = nullptr;
  label::RateLimit logged_{1.0 / 60, 1};  // connections above a limit: a line a minute for each address
  int port_ = -1;
  std::atomic<bool> ended_{false};
};

LabelServer::LabelServer(const ServerOptions& options) : http_(std::make_unique<Http>(options)) {}
LabelServer::~LabelServer() = default;
int LabelServer::port() const { return http_->port(); }
void LabelServer::run(LabelPage& page) { http_->serve(page); }
void LabelServer::stop() { http_->end(); }

}  // namespace pal::launch
