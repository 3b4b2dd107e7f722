// page: the labeling page's server without its sockets: a request in, a response out.
//
// Order of the checks: Host, method, session, rate, Origin, type and size of the body, then the path. What fails is refused
// with the status that says so and a line in the log. Everything but the first visit needs a session; nothing but the
// compiled-in files, images by number and the calls below is there to be had: no path of a request names a file.
//
//   GET  /?token=T                 first visit: trades a link for a cookie, once
//   GET  / /app.js …               the page (assets.h)
//   GET  /image/N /image/N/full    a sample, small or as it is
//   GET  /api/questions?n=3        cards for this person, theirs for a while
//   POST /api/answer               {uuid, query, ticket, answers: [[member, verdict]…], seconds, replaces?}: acknowledged once on disk
//   POST /api/undo                 {uuid}
//   GET  /api/mine                 this person's newest cards
//   GET  /api/standing             figures for the dashboard
//   GET  /api/review, POST /api/settle {uuid, query, member, answer}, GET /export/NAME    the owner alone
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/label/answer_service.h"
#include "core/label/label_stats.h"
#include "core/label/rate_limit.h"
#include "core/label/users.h"
#include "launch/label/page_message.h"

namespace pal::launch {

inline constexpr size_t kLongestBody = 64 * 1024;

struct PageImage {
  std::string type, bytes;
};
enum class ImageSize { small, full };

// What the page knows of the run besides its answers.
struct RunFacts {
  std::string name;  // of the run
  int64_t samples = 0, classes = 0, budget = 0;
  bool images = true;                                     // false: features, shown by their numbers
  std::vector<std::pair<int64_t, double>> accuracy = {};  // (step, share) while training
  std::string measure = {};                               // what that accuracy is
  int64_t trained_on = -1;                                // answers that training has used; -1: it has not begun
};

// Who is behind the page. Functions may be called by any thread.
struct PageParts {
  label::AnswerService& service;
  label::Users& people;
  const label::Tokens& tokens;
  // nothing: there is no picture of it. Throws Error (data) when it is broken.
  std::function<std::optional<PageImage>(int64_t sample, ImageSize size)> image;
  std::function<std::shared_ptr<const label::LabelStats>()> stats;  // may be nullptr
  std::function<RunFacts()> facts;
  std::function<std::string(int64_t node)> node_name;
  std::function<std::string(const std::string& name)> exported;  // the file of that name; "" when there is none
  std::function<void(const std::string& line)> log;
  std::function<double()> now;  // seconds, never back
};

// Which Host headers are ours: these names with our port; with `any_address` also every address written as numbers (which
// no foreign name can be made to stand for).
struct PageHosts {
  std::set<std::string> names;
  int port = 0;
  bool any_address = false;
  bool ours(const std::string& host) const;
};

struct PageLimits {
  double answers_per_second = 20, answers_burst = 60;
  double reads_per_second = 200, reads_burst = 800;
  double refusals_per_second = 1, refusals_burst = 20;  // of one address without a session
};

class LabelPage {
 public:
  LabelPage(PageParts parts, PageHosts hosts, const PageLimits& limits = {});
  PageResponse handle(const PageRequest& request);

  // Of a request that cannot be handled at all (too large, too slow): logged, with the page's headers.
  PageResponse refusal(const PageRequest& request, int status, const std::string& sentence);

 private:
  PageResponse refuse(const PageRequest& request, int status, const std::string& sentence);
  PageResponse refuse_visit(const PageRequest& request, int status, const std::string& sentence);  // of the page itself
  PageResponse route(const PageRequest& request);
  PageResponse first_visit(const PageRequest& request, const label::User* person);
  PageResponse asset(const PageRequest& request);
  PageResponse image(const PageRequest& request);
  PageResponse questions(const PageRequest& request, const label::User& person);
  PageResponse answer(const PageRequest& request, const label::User& person);
  PageResponse undo(const PageRequest& request, const label::User& person);
  PageResponse mine(const label::User& person);
  PageResponse stats(const label::User& person);
  PageResponse review();
  PageResponse resolve(const PageRequest& request, const label::User& person);
  PageResponse exported(const PageRequest& request);

  PageParts parts_;
  const PageHosts hosts_;
  label::RateLimit answers_, reads_, refusals_;
};

}  // namespace pal::launch
