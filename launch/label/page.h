// page: the labeling page's server without its sockets: a request in, a response out.
//
// Order of the checks: Host, method, session, rate, Origin, type and size of the body, then the path. A request that
// fails a check is refused with the matching status, and the refusal is logged. Everything but the first visit needs a
// session. Only the compiled-in files, images by number and the calls below exist: no path of a request names a file.
//
//   GET  /?token=T                 first visit: a page whose script posts the link; previews of a link do not use it up
//   POST /api/enter                {token}: exchanges a link for a cookie, once
//   GET  / /app.js …               the page (embedded.h)
//   GET  /image/N /image/N/full    a sample, small or in its own size
//   GET  /api/questions?n=3        cards for this person, reserved for a while
//   POST /api/answer               {uuid, query, ticket, answers: [[member, verdict]…], seconds, replaces?}:
//                                  acknowledged once it is on disk
//   POST /api/undo                 {uuid}
//   GET  /api/mine                 this person's newest cards
//   GET  /api/standing             figures for the dashboard
//   GET  /api/review, POST /api/settle {uuid, query, member, answer}, GET /export/NAME    for the owner only
// To add a call: one line in routes() (page.cpp) and its handler (page_calls.cpp).
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/label/answer_service.h"
#include "core/label/label_spec.h"
#include "core/label/label_stats.h"
#include "core/label/rate_limit.h"
#include "core/label/users.h"

namespace pal::launch {

// A request and its response, without sockets.
struct PageRequest {
  std::string method = "GET", path = "/";
  std::map<std::string, std::string> parameters = {};
  std::string host = {}, origin = {}, cookie = {}, content_type = {};  // headers; "" when missing
  std::string body = {};
  std::string address = {};  // of the client
};

bool is_json(const PageRequest& request);

struct PageResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

inline constexpr size_t kLongestBody = 64 * 1024;

struct PageImage {
  std::string type, bytes;
};
enum class ImageSize { small, full };

// What the page shows of the run besides its answers.
struct RunFacts {
  std::string name;  // of the run
  int64_t samples = 0, classes = 0, budget = 0;
  bool images = true;                                     // false: features, shown by their numbers
  std::vector<std::pair<int64_t, double>> accuracy = {};  // (step, share) while training
  std::string measure = {};                               // what that accuracy is
  int64_t trained_on = -1;                                // answers that training has used; -1: it has not started
  label::LabelSpec words = {};
  std::string unused = {};  // which answers have no weight in the graph; "": all have one
  std::string why = {};     // why no question was chosen
};

// The run behind the page. Thread: any.
class PageRun {
 public:
  virtual ~PageRun() = default;
  // Nothing: there is no picture of the sample. Throws Error (data) when the stored picture is damaged.
  virtual std::optional<PageImage> image(int64_t sample, ImageSize size) const = 0;
  virtual std::shared_ptr<const label::LabelStats> stats() const = 0;  // may be nullptr
  virtual RunFacts facts() const = 0;
  virtual std::string node_name(int64_t node) const = 0;            // of the taxonomy
  virtual std::string class_name(int64_t sample) const = 0;         // "": it is unknown, or is not to be shown
  virtual std::string exported(const std::string& name) const = 0;  // the content of the file of that name
  virtual void log(const std::string& line) const = 0;
  virtual double now() const = 0;  // seconds of a monotonic clock
};

// The Host headers that the page accepts: these names with its port; with `any_address` also every numeric address (no
// foreign name resolves to one).
struct PageHosts {
  std::set<std::string> names;
  int port = 0;
  bool any_address = false;
  bool ours(const std::string& host) const;
};

// A browser sends a cookie to all ports of a host: the port is in the name, so that two pages do not share one.
std::string cookie_name(int port);
// The beginning of a text, as it may appear in a line of the log.
std::string log_text(const std::string& text);

struct PageLimits {
  double answers_per_second = 20, answers_burst = 60;
  double reads_per_second = 200, reads_burst = 800;
  double refusals_per_second = 1, refusals_burst = 20;  // of one network_of() without a session
};

// What limits count as one client: the address, or of an IPv6 address its /64, whose owner has 2^64 addresses.
std::string network_of(const std::string& address);

class LabelPage {
 public:
  LabelPage(label::AnswerService& service, label::Users& people, const label::Tokens& tokens, const PageRun& run,
            PageHosts hosts, const PageLimits& limits = {});
  PageResponse handle(const PageRequest& request);

  // The response to a request that cannot be handled at all (too large, too slow): logged, with the page's headers.
  PageResponse refusal(const PageRequest& request, int status, const std::string& sentence);

 private:
  struct Route;
  static const std::vector<Route>& routes();

  PageResponse refuse(const PageRequest& request, int status, const std::string& sentence);
  // As an HTML page where the path is that of the page itself.
  PageResponse refuse_visit(const PageRequest& request, int status, const std::string& sentence);
  PageResponse route(const PageRequest& request);
  PageResponse enter(const PageRequest& request, const label::User* person);  // person: nullptr without a session
  PageResponse asset(const PageRequest& request);

  // Handlers of routes().
  PageResponse image(const PageRequest& request, const label::User& person);
  PageResponse questions(const PageRequest& request, const label::User& person);
  PageResponse answer(const PageRequest& request, const label::User& person);
  PageResponse undo(const PageRequest& request, const label::User& person);
  PageResponse mine(const PageRequest& request, const label::User& person);
  PageResponse stats(const PageRequest& request, const label::User& person);
  PageResponse review(const PageRequest& request, const label::User& person);
  PageResponse resolve(const PageRequest& request, const label::User& person);
  PageResponse exported(const PageRequest& request, const label::User& person);

  label::AnswerService& service_;
  label::Users& people_;
  const label::Tokens& tokens_;
  const PageRun& run_;
  const PageHosts hosts_;
  label::RateLimit answers_, reads_, refusals_;
};

}  // namespace pal::launch
