// label_page: a labeling page over a real ledger in a folder of its own, for tests and for the fuzzer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "launch/label/page.h"
#include "tests/test_folder.h"

namespace pal::launch {

struct TestPage {
  static constexpr int kPort = 8765;
  static constexpr int64_t kSamples = 1000, kBrokenSample = 666;

  using Look = std::function<std::shared_ptr<const label::LabelStats>(const oracle::Ledger&)>;
  // At a port; `in`: a folder that stays, with what an earlier page left there.
  explicit TestPage(const Look& look, const PageLimits& limits = {}, int port = kPort, int64_t grids = 20,
                    const std::string& in = "")
      : folder(in.empty() ? own.path().string() : in),
        ledger(folder + "/ledger.sqlite", "run"),
        tokens(folder + "/secret"),
        people({{"ann", label::Role::owner}, {"bob"}, {"<script>alert(1)</script>"}}, tokens, folder + "/links"),
        service(asked(ledger, grids), folder, {}),
        run(*this, look),
        page(service, people, tokens, run, {{"127.0.0.1", "localhost"}, port}, limits),
        hosts_port(port) {}

  static oracle::Ledger& asked(oracle::Ledger& ledger, int64_t grids) {
    if (ledger.questions() > 0) return ledger;
    std::vector<oracle::Query> queries;
    for (int64_t q = 0; q < grids; ++q)
      queries.push_back({0, oracle::QueryKind::captcha, q, {500 + 2 * q, 501 + 2 * q}});
    ledger.record_queries(queries, {"captcha", 1, 0});
    return ledger;
  }

  std::string cookie(const std::string& person) {
    return "a=b; pal_label_" + std::to_string(hosts_port) + "=" + people.enter(people.link(person)).cookie;
  }

  PageRequest get(const std::string& path, const std::string& cookie) {
    PageRequest r{"GET", path};
    r.host = "127.0.0.1:8765";
    r.cookie = cookie;
    r.address = "10.0.0.1";
    return r;
  }
  PageRequest post(const std::string& path, const std::string& cookie, const std::string& body) {
    PageRequest r = get(path, cookie);
    r.method = "POST";
    r.origin = "http://127.0.0.1:8765";
    r.content_type = "application/json";
    r.body = body;
    return r;
  }
  // A whole card of a query, with `verdict` for each member.
  std::string card(const std::string& person, int64_t query, const std::string& uuid,
                   const std::string& verdict = "yes") {
    const std::string member = std::to_string(500 + 2 * (query - 1)), other = std::to_string(501 + 2 * (query - 1));
    return "{\"uuid\": \"" + uuid + "\", \"query\": " + std::to_string(query) + ", \"ticket\": \"" +
           tokens.ticket(person, query) + "\", \"answers\": [[" + member + ", \"" + verdict + "\"], [" + other +
           ", \"" + verdict + "\"]], \"seconds\": 2}";
  }

  struct Run final : PageRun {
    Run(TestPage& page, Look look) : page_(page), look_(std::move(look)) {}
    std::optional<PageImage> image(int64_t sample, ImageSize) const override {
      if (sample == kBrokenSample) throw Error(Exit::data, "CRC of sample 666");
      return PageImage{"image/png", "png of " + std::to_string(sample)};
    }
    std::shared_ptr<const label::LabelStats> stats() const override { return look_(page_.ledger); }
    RunFacts facts() const override { return page_.facts; }
    std::string node_name(int64_t) const override { return "<i>shoes</i>"; }
    std::string class_name(int64_t sample) const override { return sample == 0 ? "<i>boot</i>" : ""; }
    std::string exported(const std::string& name) const override { return "content of " + name; }
    void log(const std::string& line) const override {
      const std::lock_guard<std::mutex> lock(page_.mutex);
      page_.log.push_back(line);
    }
    double now() const override { return page_.now.load(); }

   private:
    TestPage& page_;
    const Look look_;
  };

  TestFolder own;
  const std::string folder;
  oracle::Ledger ledger;
  label::Tokens tokens;
  label::Users people;
  label::AnswerService service;
  std::atomic<double> now{100};
  std::mutex mutex;
  std::vector<std::string> log;
  RunFacts facts{"<b>run</b>", kSamples, 10};
  Run run;
  LabelPage page;
  const int hosts_port;
};

}  // namespace pal::launch
