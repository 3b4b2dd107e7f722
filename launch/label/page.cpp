#include "launch/label/page.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/embedded.h"

namespace pal::launch {
namespace {

std::string cookie_value(const std::string& header, const std::string& cookie) {
  const std::string name = cookie + "=";
  for (size_t at = 0; at < header.size();) {
    const size_t end = std::min(header.find(';', at), header.size());
    const size_t begin = header.find_first_not_of(' ', at);
    if (begin < end && header.compare(begin, name.size(), name) == 0)
      return header.substr(begin + name.size(), end - begin - name.size());
    at = end + 1;
  }
  return "";
}

bool is_address(const std::string& host) {
  return !host.empty() && (host.front() == '[' || host.find_first_not_of("0123456789.") == std::string::npos);
}

// A sentence of the program (never text of the request) as an HTML page.
std::string sentence_page(std::string sentence) {
  sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  return "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\"><title>PAL</title><h1>PAL</h1><p>" +
         sentence + ".</p></html>\n";
}

void harden(PageResponse& response) {
  response.headers.insert(response.headers.end(),
                          {{"Content-Security-Policy",
                            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
                            "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                           {"X-Content-Type-Options", "nosniff"},
                           {"X-Frame-Options", "DENY"},
                           {"Referrer-Policy", "no-referrer"},
                           {"Cross-Origin-Resource-Policy", "same-origin"},
                           {"Cross-Origin-Opener-Policy", "same-origin"}});
  const bool lasts = std::any_of(response.headers.begin(), response.headers.end(),
                                 [](const auto& h) { return h.first == "Cache-Control"; });
  if (!lasts) response.headers.emplace_back("Cache-Control", "no-store");
}

}  // namespace

std::string cookie_name(int port) { return fmt::format("pal_label_{}", port); }

std::string log_text(const std::string& text) { return printable(text.substr(0, 120)); }

std::string network_of(const std::string& address) {
  in6_addr six{};
  char text[INET6_ADDRSTRLEN] = {};
  const size_t zone = std::min(address.find('%'), address.size());
  if (inet_pton(AF_INET6, address.substr(0, zone).c_str(), &six) != 1) return address;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return inet_ntop(AF_INET, six.s6_addr + 12, text, sizeof(text));
  std::fill(six.s6_addr + 8, six.s6_addr + 16, uint8_t{0});
  return inet_ntop(AF_INET6, &six, text, sizeof(text)) + address.substr(zone) + "/64";
}

bool is_json(const PageRequest& request) { return request.content_type.starts_with("application/json"); }

bool PageHosts::ours(const std::string& host) const {
  const std::string ending = fmt::format(":{}", port);
  const bool with_port = host.size() > ending.size() && host.ends_with(ending);
  if (!with_port && port != 80) return false;
  const std::string name = with_port ? host.substr(0, host.size() - ending.size()) : host;
  return names.count(name) > 0 || (any_address && is_address(name));
}

LabelPage::LabelPage(label::AnswerService& service, label::Users& people, const label::Tokens& tokens,
                     const PageRun& run, PageHosts hosts, const PageLimits& limits)
    : service_(service),
      people_(people),
      tokens_(tokens),
      run_(run),
      hosts_(std::move(hosts)),
      answers_(limits.answers_per_second, limits.answers_burst),
      reads_(limits.reads_per_second, limits.reads_burst),
      refusals_(limits.refusals_per_second, limits.refusals_burst) {}

struct LabelPage::Route {
  enum class Method { get, post };  // get: HEAD too
  enum class Match { whole, prefix };
  Method method;
  std::string_view path;
  Match match;
  label::Role role;  // owner: for the owner only
  PageResponse (LabelPage::*handler)(const PageRequest&, const label::User&);

  bool fits(Method asked, const std::string& asked_path) const {
    return asked == method && (match == Match::whole ? asked_path == path : asked_path.starts_with(path));
  }
};

const std::vector<LabelPage::Route>& LabelPage::routes() {
  using label::Role;
  constexpr Route::Method get = Route::Method::get, post = Route::Method::post;
  constexpr Route::Match whole = Route::Match::whole, prefix = Route::Match::prefix;
  static const std::vector<Route> routes = {
      {get, "/api/questions", whole, Role::annotator, &LabelPage::questions},
      {get, "/api/mine", whole, Role::annotator, &LabelPage::mine},
      {get, "/api/standing", whole, Role::annotator, &LabelPage::stats},
      {get, "/image/", prefix, Role::annotator, &LabelPage::image},
      {get, "/api/review", whole, Role::owner, &LabelPage::review},
      {get, "/export/", prefix, Role::owner, &LabelPage::exported},
      {post, "/api/answer", whole, Role::annotator, &LabelPage::answer},
      {post, "/api/undo", whole, Role::annotator, &LabelPage::undo},
      {post, "/api/settle", whole, Role::owner, &LabelPage::resolve},
  };
  return routes;
}

PageResponse LabelPage::refuse(const PageRequest& request, int status, const std::string& sentence) {
  run_.log(fmt::format("refused {} {} {} from {}: {}", status, log_text(request.method), log_text(request.path),
                       log_text(request.address), log_text(sentence)));
  PageResponse response{status, "text/plain; charset=utf-8", sentence + "\n"};
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  if (status == 405) response.headers.emplace_back("Allow", "GET, HEAD, POST");
  return response;
}

PageResponse LabelPage::refuse_visit(const PageRequest& request, int status, const std::string& sentence) {
  PageResponse response = refuse(request, status, sentence);
  if (request.path != "/") return response;
  response.type = "text/html; charset=utf-8";
  response.body = sentence_page(sentence);
  return response;
}

PageResponse LabelPage::refusal(const PageRequest& request, int status, const std::string& sentence) {
  PageResponse response = refuse(request, status, sentence);
  harden(response);
  return response;
}

PageResponse LabelPage::handle(const PageRequest& request) {
  PageResponse response;
  try {
    response = route(request);
  } catch (const Error& e) {  // of the disk or the ledger: the browser keeps the answer and sends it again
    response = refuse(request, 503, e.what());
  }
  harden(response);
  return response;
}

PageResponse LabelPage::route(const PageRequest& r) {
  const double now = run_.now();
  if (!hosts_.ours(r.host)) return refuse(r, 421, "this page is not served under that host name");
  if (r.method != "GET" && r.method != "HEAD" && r.method != "POST")
    return refuse(r, 405, "this method is not supported");
  const bool post = r.method == "POST";
  const label::User* person = people_.of_cookie(cookie_value(r.cookie, cookie_name(hosts_.port)));
  if (!post && r.path == "/" && r.parameters.count("token")) return asset({"GET", "/enter.html"});
  if (!post && (r.path == "/enter.js" || r.path == "/favicon.ico")) return asset(r);
  const bool entering = post && r.path == "/api/enter";
  if (person == nullptr && !entering) {
    if (!refusals_.allow(network_of(r.address), now)) return refuse(r, 429, "too many requests without a session");
    return refuse_visit(
        r, 401,
        "open this page with your link: your browser has no session here, and the person who runs pal label has it");
  }
  if (!entering && !(post ? answers_ : reads_).allow(person->name, now))
    return refuse(r, 429, "too many requests: wait a second");
  if (post) {
    if (r.origin != "http://" + r.host && r.origin != "https://" + r.host)
      return refuse(r, 403, "posts are accepted from this page only");
    if (!is_json(r)) return refuse(r, 415, "send JSON");
    if (r.body.size() > kLongestBody) return refuse(r, 413, "a post has at most 64 KiB");
  }
  if (entering) return enter(r, person);
  for (const Route& route : routes()) {
    if (!route.fits(post ? Route::Method::post : Route::Method::get, r.path)) continue;
    if (route.role == label::Role::owner && person->role != label::Role::owner)
      return refuse(r, 403, "this is for the owner of the run");
    return (this->*route.handler)(r, *person);
  }
  return post ? refuse(r, 404, "there is nothing here") : asset(r);
}

PageResponse LabelPage::asset(const PageRequest& r) {
  const std::string path = r.path == "/" ? "/index.html" : r.path;
  for (const Asset& a : page_assets()) {
    if (a.path != path) continue;
    PageResponse response{200, std::string(a.type), std::string(a.content)};
    response.headers.emplace_back("Cache-Control", "no-cache");
    return response;
  }
  if (r.path == "/favicon.ico") return {204};
  return refuse(r, 404, "there is nothing here");
}

PageResponse LabelPage::image(const PageRequest& r, const label::User&) {
  std::string digits = r.path.substr(7);
  const bool full = digits.ends_with("/full");
  if (full) digits.resize(digits.size() - 5);
  if (digits.empty() || digits.size() > 12 || digits.find_first_not_of("0123456789") != std::string::npos)
    return refuse(r, 404, "images have numbers");
  const int64_t sample = std::stoll(digits);
  if (sample >= run_.facts().samples) return refuse(r, 404, "there is no such sample");
  std::optional<PageImage> found;
  try {
    found = run_.image(sample, full ? ImageSize::full : ImageSize::small);
  } catch (const Error& e) {
    return refuse(r, 422, e.what());  // the person may answer: broken
  }
  if (!found) return refuse(r, 404, "this sample has no picture");
  PageResponse response{200, found->type, std::move(found->bytes)};
  response.headers.emplace_back("Cache-Control", "private, max-age=86400, immutable");
  return response;
}

PageResponse LabelPage::exported(const PageRequest& r, const label::User&) {
  const std::string name = r.path.substr(8);
  static const std::set<std::string> names = {"answers.jsonl", "answers.csv", "label-studio.json", "edges.csv"};
  if (!names.count(name))
    return refuse(r, 404, "the files are answers.jsonl, answers.csv, label-studio.json and edges.csv");
  PageResponse response{200, "application/octet-stream", run_.exported(name)};
  response.headers.emplace_back("Content-Disposition", "attachment; filename=\"" + name + "\"");
  return response;
}

}  // namespace pal::launch
