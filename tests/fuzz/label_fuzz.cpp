// label_fuzz: bytes as a request to the labeling page: method, path, parameters, headers and body, with or without a
// valid session. The page must not crash, every response has a status, and only answers to asked questions are
// recorded.
//
// Input: the first byte has a bit for each valid part of the request (host, session, origin, type, ticket). Then lines:
// method, path, a parameter as name=value, a header's value. The rest is the body.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "launch/embedded.h"
#include "tests/launch/label/label_page.h"

namespace pal::launch {

const std::vector<Asset>& page_assets() {
  static const std::vector<Asset> assets = {{"/index.html", "text/html", "<!doctype html>"},
                                            {"/app.js", "text/javascript", ";"}};
  return assets;
}

namespace {

struct Bytes {
  const char* at;
  size_t left;
  std::string line() {
    std::string text;
    while (left > 0) {
      const char c = *at++;
      --left;
      if (c == '\n') break;
      text += c;
    }
    return text;
  }
};

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace
}  // namespace pal::launch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pal;
  using launch::Bytes, launch::require;
  launch::PageLimits limits;
  limits.answers_per_second = limits.reads_per_second = limits.refusals_per_second = 1e12;
  limits.answers_burst = limits.reads_burst = limits.refusals_burst = 1e12;
  static launch::TestPage t([](const oracle::Ledger&) { return nullptr; }, limits, launch::TestPage::kPort, 20, "");
  static const std::string cookie = t.cookie("bob");
  if (size == 0) return 0;
  const uint8_t right = data[0];
  Bytes bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
  launch::PageRequest r;
  r.method = right & 1 ? "POST" : "GET";
  if (const std::string method = bytes.line(); !method.empty()) r.method = method;
  r.path = bytes.line();
  const std::string parameter = bytes.line(), header = bytes.line();
  const size_t equals = parameter.find('=');
  if (equals != std::string::npos) r.parameters[parameter.substr(0, equals)] = parameter.substr(equals + 1);
  r.host = right & 2 ? "127.0.0.1:8765" : header;
  r.cookie = right & 4 ? cookie : header;
  r.origin = right & 8 ? "http://127.0.0.1:8765" : header;
  r.content_type = right & 16 ? "application/json" : header;
  r.address = "10.0.0.1";
  r.body.assign(bytes.at, bytes.left);
  if (const size_t at = r.body.find("TICKET"); (right & 32) != 0 && at != std::string::npos)
    r.body.replace(at, 6, t.tokens.ticket("bob", 1));
  const launch::PageResponse response = t.page.handle(r);
  require(response.status >= 200 && response.status < 600 && response.status != 500);
  for (const auto& [name, value] : response.headers)
    require(value.find_first_of("\r\n") == std::string::npos && name.find_first_of("\r\n:") == std::string::npos);
  for (const std::string& line : t.log) require(line.find_first_of("\r\n") == std::string::npos);
  t.log.clear();
  // An answer belongs to the annotator of the session.
  static size_t known = 0;
  if (response.status == 200 && r.method == "POST" && ++known % 64 == 0) {
    for (const oracle::RecordedAnswer& a : t.ledger.all_answers())
      require(a.answer.annotator == "bob" && a.answer.query == 1);
  }
  return 0;
}
