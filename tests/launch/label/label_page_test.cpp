// label_page: the page's requests without a socket: which are served, and which are refused with what status and
// logged.
#include "tests/launch/label/label_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "launch/embedded.h"

namespace pal::launch {
namespace {

using nlohmann::json;

const std::string kUuid(32, 'a');

std::string header(const PageResponse& r, const std::string& name) {
  for (const auto& [key, value] : r.headers) {
    if (key == name) return value;
  }
  return "";
}

class LabelPageTest : public testing::Test {
 protected:
  PageResponse get(const std::string& path) { return t.page.handle(t.get(path, ann)); }
  PageResponse post(const std::string& path, const std::string& body) { return t.page.handle(t.post(path, ann, body)); }
  // Refused with this status, with a line in the log and nothing recorded.
  void expect_refused(const PageRequest& request, int status) {
    const size_t lines = t.log.size(), answers = t.ledger.all_answers().size();
    const PageResponse r = t.page.handle(request);
    EXPECT_EQ(r.status, status) << request.method << " " << request.path << " " << r.body;
    ASSERT_GT(t.log.size(), lines);
    EXPECT_NE(t.log.back().find("refused " + std::to_string(status)), std::string::npos) << t.log.back();
    EXPECT_EQ(t.log.back().find_first_of("\r\n"), std::string::npos);
    EXPECT_EQ(t.ledger.all_answers().size(), answers);
    EXPECT_EQ(header(r, "X-Content-Type-Options"), "nosniff");
  }

  TestPage t{[](const oracle::Ledger& l) {
    return std::make_shared<const label::LabelStats>(
        label::label_stats(l, graph::GraphStore(TestPage::kSamples), oracle::ConsensusKind::majority, {}));
  }};
  const std::string ann = t.cookie("ann"), bob = t.cookie("bob");
};

TEST_F(LabelPageTest, AFirstVisitExchangesTheLinkForACookieOnce) {
  const auto enter = [&](const std::string& token, const std::string& cookie) {
    return t.post("/api/enter", cookie, json{{"token", token}}.dump());
  };
  const std::string link = t.people.link("bob");
  // A preview of the link, by GET or HEAD, does not use it up.
  PageRequest look = t.get("/", "");
  look.parameters["token"] = link;
  for (const char* method : {"HEAD", "GET", "GET"}) {
    look.method = method;
    const PageResponse seen = t.page.handle(look);
    EXPECT_EQ(seen.status, 200);
    EXPECT_EQ(header(seen, "Set-Cookie"), "");
    EXPECT_EQ(seen.body.find(link), std::string::npos);
    EXPECT_EQ(t.people.link("bob"), link);
  }
  EXPECT_EQ(t.page.handle(t.get("/enter.js", "")).type, "text/javascript; charset=utf-8");
  const PageResponse first = t.page.handle(enter(link, ""));
  EXPECT_EQ(first.status, 200);
  const std::string cookie = header(first, "Set-Cookie");
  for (const char* part : {"HttpOnly", "SameSite=Strict", "Path=/"}) EXPECT_NE(cookie.find(part), std::string::npos);
  const PageResponse stranger = t.page.handle(t.get("/", ""));
  EXPECT_EQ(stranger.type, "text/html; charset=utf-8");
  EXPECT_NE(stranger.body.find("<p>Open this page with your link"), std::string::npos) << stranger.body;
  expect_refused(enter(link, ""), 403);  // replayed
  for (const std::string& unknown : {std::string(64, '0'), std::string()}) expect_refused(enter(unknown, ""), 403);
  expect_refused(t.post("/api/enter", "", "{\"token\": 1}"), 400);
  PageRequest foreign = enter(t.people.link("bob"), "");
  foreign.origin = "http://evil.example";
  expect_refused(foreign, 403);
  const std::string mine = cookie.substr(0, cookie.find(';'));
  EXPECT_EQ(t.page.handle(t.get("/", mine)).status, 200);
  // A person with a session may open a used link of theirs again, and another person's takes its place.
  const PageResponse again = t.page.handle(enter(t.tokens.link("bob", 0), bob));
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(header(again, "Set-Cookie"), "");
  expect_refused(enter(t.tokens.link("ann", 0), bob), 403);
  EXPECT_NE(header(t.page.handle(enter(t.people.link("ann"), bob)), "Set-Cookie"), "");
  for (const std::string& line : t.log) {
    for (const char* name : {"ann", "bob"}) {
      for (int64_t number = 0; number < 4; ++number)
        EXPECT_EQ(line.find(t.tokens.link(name, number)), std::string::npos) << "a link in the log: " << line;
    }
  }
}

TEST_F(LabelPageTest, NothingIsServedWithoutASession) {
  for (const char* path : {"/", "/app.js", "/image/1", "/api/questions", "/api/mine", "/api/standing", "/api/review",
                           "/export/answers.csv", "/nothing"}) {
    expect_refused(t.get(path, ""), 401);
    expect_refused(t.get(path, "pal_label_8765=616e6e.0." + std::string(64, '0')), 401);
    t.now = t.now + 5;
  }
  expect_refused(t.post("/api/answer", "", t.card("ann", 1, kUuid)), 401);
}

TEST_F(LabelPageTest, TheAssetsAreServedAndLoadNothing) {
  for (const Asset& a : page_assets()) {
    const PageResponse r = get(std::string(a.path));
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.type, a.type);
    EXPECT_NE(header(r, "Content-Security-Policy").find("default-src 'none'"), std::string::npos);
    std::string text(a.content);
    const std::string svg = "http://www.w3.org/2000/svg";  // a name, which no browser fetches
    for (size_t at = text.find(svg); at != std::string::npos; at = text.find(svg)) text.erase(at, svg.size());
    EXPECT_EQ(text.find("://"), std::string::npos) << a.path;
    EXPECT_EQ(text.find("innerHTML"), std::string::npos) << a.path;
  }
  EXPECT_EQ(get("/").type, "text/html; charset=utf-8");
}

TEST_F(LabelPageTest, ForeignHostsAndOrigins) {
  for (const char* host : {"", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8765.evil.example",
                           "192.168.1.7:8765", "localhost:8765\r\nX: y"}) {
    PageRequest r = t.get("/", ann);
    r.host = host;
    expect_refused(r, 421);
  }
  PageRequest local = t.get("/", ann);
  local.host = "localhost:8765";
  EXPECT_EQ(t.page.handle(local).status, 200);
  for (const char* origin : {"", "null", "http://evil.example", "http://127.0.0.1:8766", "http://localhost:8765",
                             "http://127.0.0.1:8765.evil.example"}) {
    PageRequest r = t.post("/api/answer", ann, t.card("ann", 1, kUuid));
    r.origin = origin;
    expect_refused(r, 403);
  }
  const PageHosts open{{"me"}, 8000, true};
  EXPECT_TRUE(open.ours("192.168.1.7:8000") && open.ours("me:8000") && open.ours("[fe80::1]:8000"));
  EXPECT_FALSE(open.ours("192.168.1.7:8001") || open.ours("evil.example:8000") || open.ours("1.2.3.4.example:8000"));
}

TEST_F(LabelPageTest, UnknownPaths) {
  for (const char* path :
       {"/../secret", "/..%2fsecret", "/label/secret", "/ledger.sqlite", "//etc/passwd", "/image/../../secret",
        "/image/", "/image/-1", "/image/1e3", "/image/0x10", "/image/1000", "/image/99999999999999999999",
        "/image/1/../2", "/image/1/full/full", "/export/../secret", "/export/", "/api/answer", "/index.html/"}) {
    expect_refused(t.get(path, ann), 404);
  }
  expect_refused(t.post("/api/nothing", ann, "{}"), 404);
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "TRACE", "GET\r\nX: y"}) {
    PageRequest r = t.get("/", ann);
    r.method = method;
    expect_refused(r, 405);
  }
}

TEST_F(LabelPageTest, ImagesByNumber) {
  EXPECT_EQ(get("/image/999").body, "png of 999");
  EXPECT_EQ(get("/image/7/full").status, 200);
  expect_refused(t.get("/image/666", ann), 422);
}

TEST_F(LabelPageTest, WrongBodies) {
  PageRequest r = t.post("/api/answer", ann, t.card("ann", 1, kUuid));
  r.content_type = "text/plain";
  expect_refused(r, 415);
  expect_refused(t.post("/api/answer", ann, std::string(kLongestBody + 1, ' ')), 413);
  const std::string good = t.card("ann", 1, kUuid);
  ASSERT_TRUE(json::accept(good));
  std::vector<std::string> wrong = {
      "", "[]", "null", "{", "{\"uuid\": 1}", std::string(60000, '['), "\xff\xfe", "{\"uuid\": \"" + kUuid + "\"}"};
  const auto with = [&](const char* key, const json& value) {
    json j = json::parse(good);
    j[key] = value;
    wrong.push_back(j.dump());
  };
  with("uuid", kUuid + "a");
  with("uuid", std::string(32, 'A'));
  with("uuid", "../../../../../../../../etc/pass");
  for (const json& query : {json(-1), json(1.5), json("1"), json(nullptr), json(uint64_t{1} << 63)})
    with("query", query);
  for (const json& answers :
       {json(3), json::array(), json::object(), json::array({1}), json::array({json::array({500, "maybe"})}),
        json::array({json::array({-1, "yes"})}), json::array({json::array({500, "yes"}), json::array({500, "no"})})}) {
    with("answers", answers);
  }
  with("answers", std::vector<std::pair<int, std::string>>(1001, {500, "yes"}));
  for (const json& seconds : {json("1"), json(-1)}) with("seconds", seconds);
  with("replaces", "x");
  for (const std::string& body : wrong) {
    t.now = t.now + 5;
    expect_refused(t.post("/api/answer", ann, body), 400);
  }
  for (const char* body : {"{}", "{\"uuid\": \"x\"}", "7"}) expect_refused(t.post("/api/undo", ann, body), 400);
  EXPECT_EQ(post("/api/answer", good).status, 200) << "and a right body is accepted";
}

TEST_F(LabelPageTest, OnlyThePersonWhoWasAskedMayAnswer) {
  expect_refused(t.post("/api/answer", bob, t.card("ann", 1, kUuid)), 403);
  json j = json::parse(t.card("ann", 1, kUuid));
  j["query"] = 2;
  expect_refused(t.post("/api/answer", ann, j.dump()), 403);
  j.erase("ticket");
  expect_refused(t.post("/api/answer", ann, j.dump()), 403);
  expect_refused(t.post("/api/answer", ann, t.card("ann", 99, kUuid)), 409);  // never asked
  j = json::parse(t.card("ann", 1, kUuid));
  j["answers"] = json::array({json::array({777, "yes"})});
  expect_refused(t.post("/api/answer", ann, j.dump()), 409);  // not a member
  ASSERT_EQ(post("/api/answer", t.card("ann", 1, kUuid)).status, 200);
  expect_refused(t.post("/api/undo", bob, "{\"uuid\": \"" + kUuid + "\"}"), 409);
  expect_refused(t.post("/api/answer", ann, t.card("ann", 1, std::string(32, 'b'))), 409);
  for (const char* path : {"/api/review", "/export/answers.csv"}) expect_refused(t.get(path, bob), 403);
  expect_refused(t.post("/api/settle", bob, "{}"), 403);
}

TEST_F(LabelPageTest, RatesAreLimited) {
  int refused = 0;
  for (int k = 0; k < 100; ++k) refused += t.page.handle(t.post("/api/undo", bob, "{}")).status == 429;
  EXPECT_EQ(refused, 40);
  EXPECT_EQ(post("/api/answer", t.card("ann", 1, kUuid)).status, 200) << "other people are not limited";
  t.now = t.now + 1;
  EXPECT_EQ(t.page.handle(t.post("/api/undo", bob, "{}")).status, 400);
  int guesses = 0;
  for (int k = 0; k < 50; ++k) {
    const std::string token = std::string(62, '0') + std::to_string(10 + k);
    guesses += t.page.handle(t.post("/api/enter", "", json{{"token", token}}.dump())).status == 403;
  }
  EXPECT_EQ(guesses, 20);
  int of_one_network = 0;
  for (int k = 0; k < 50; ++k) {
    PageRequest r = t.get("/", "");
    r.address = "2001:db8::" + std::to_string(k);
    of_one_network += t.page.handle(r).status == 401;
  }
  EXPECT_EQ(of_one_network, 20);
}

TEST(PageLimits, CountTheNetworksOfIPv6) {
  EXPECT_EQ(network_of("10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("fe80::5%eth0"), "fe80::%eth0/64");
  EXPECT_EQ(network_of("::ffff:10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(network_of(""), "");
}

TEST_F(LabelPageTest, AQuestionIsAnsweredAndTheAnswerIsListed) {
  const json first = json::parse(get("/api/questions").body);
  ASSERT_EQ(first["cards"].size(), 3u);
  EXPECT_EQ(first["cards"][0]["members"], json({500, 501}));
  EXPECT_EQ(json::parse(get("/api/questions").body), first) << "a reload";
  const json others = json::parse(t.page.handle(t.get("/api/questions", bob)).body);
  EXPECT_EQ(others["cards"][0]["query"], 4);
  EXPECT_FALSE(others["owner"]);
  for (int k = 0; k < 2; ++k)
    EXPECT_EQ(json::parse(post("/api/answer", t.card("ann", 1, kUuid)).body)["recorded"], kUuid);
  EXPECT_EQ(t.ledger.all_answers().size(), 2u);
  EXPECT_EQ(json::parse(get("/api/mine").body)["cards"][0]["answers"], json::parse("[[500, \"yes\"], [501, \"yes\"]]"));
  EXPECT_EQ(json::parse(get("/api/standing").body)["known"], 3);
  EXPECT_EQ(post("/api/undo", "{\"uuid\": \"" + kUuid + "\"}").status, 200);
  EXPECT_EQ(json::parse(get("/api/standing").body)["known"], 0);
  EXPECT_EQ(get("/export/answers.csv").body, "content of answers.csv");
  // Names are data: they come as JSON, which the page shows as text.
  const std::string cookie = t.cookie("<script>alert(1)</script>");
  const PageResponse r = t.page.handle(t.get("/api/questions", cookie));
  EXPECT_EQ(r.type, "application/json");
  EXPECT_EQ(json::parse(r.body)["person"], "<script>alert(1)</script>");
}

TEST_F(LabelPageTest, TheUsersWordsAreData) {
  t.facts.words = {"Is <b>this</b> the same \"patient\"?", "line 1\n<script>line 2</script>"};
  const PageResponse r = get("/api/questions");
  EXPECT_EQ(r.type, "application/json");
  const json found = json::parse(r.body);
  EXPECT_EQ(found["question"], t.facts.words.question);
  EXPECT_EQ(found["instructions"], t.facts.words.instructions);
  EXPECT_EQ(found["cards"][0]["class"], "<i>boot</i>");
  EXPECT_FALSE(found["cards"][1].contains("class")) << "it is not known";
  EXPECT_EQ(found["why"], "");
}

TEST_F(LabelPageTest, WithoutACardThePageShowsTheReason) {
  for (int64_t query = 1; query <= 20; ++query) {
    t.now = t.now + 5;
    const std::string uuid = std::string(29, 'a') + std::to_string(100 + query);
    ASSERT_EQ(post("/api/answer", t.card("ann", query, uuid, "skip")).status, 200);
  }
  EXPECT_EQ(json::parse(get("/api/questions").body)["why"], "the remaining questions are assigned to other people");
  TestPage none([](const oracle::Ledger&) { return nullptr; }, {}, TestPage::kPort, 0);
  none.facts.why = "the budget of 60 questions is spent";
  const PageResponse r = none.page.handle(none.get("/api/questions", none.cookie("ann")));
  EXPECT_EQ(json::parse(r.body)["why"], none.facts.why);
}

TEST_F(LabelPageTest, TheOwnerResolvesDisagreements) {
  ASSERT_EQ(t.page.handle(t.post("/api/answer", bob, t.card("bob", 1, kUuid, "no"))).status, 200);
  ASSERT_EQ(post("/api/answer", t.card("ann", 1, std::string(32, 'b'), "yes")).status, 200);
  json review = json::parse(get("/api/review").body);
  ASSERT_EQ(review["disagreements"].size(), 2u);
  EXPECT_EQ(review["disagreements"][0]["said"].size(), 2u);
  const std::string settle =
      "{\"uuid\": \"" + std::string(32, 'c') + "\", \"query\": 1, \"member\": 500, \"answer\": \"no\"}";
  for (int k = 0; k < 2; ++k) EXPECT_EQ(post("/api/settle", settle).status, 200);
  EXPECT_EQ(json::parse(get("/api/review").body)["disagreements"].size(), 1u);
  EXPECT_EQ(t.ledger.answers_to(1, 500).size(), 1u);
}

TEST_F(LabelPageTest, TheDashboardShowsTheAgreement) {
  const auto say = [&](const std::string& who, const std::string& cookie, int64_t query, const std::string& first,
                       const std::string& second, char uuid) {
    json card = json::parse(t.card(who, query, std::string(32, uuid), first));
    card["answers"][1][1] = second;
    ASSERT_EQ(t.page.handle(t.post("/api/answer", cookie, card.dump())).status, 200);
  };
  say("ann", ann, 1, "yes", "yes", 'a');
  say("bob", bob, 1, "yes", "no", 'b');
  say("ann", ann, 2, "no", "no", 'c');
  say("bob", bob, 2, "no", "no", 'd');
  const json d = json::parse(get("/api/standing").body);
  // Three of four alike; of ann's four two are yes, of bob's one.
  EXPECT_EQ(d["agreement"]["questions"], 4);
  EXPECT_NEAR(d["agreement"]["raw"], 0.75, 1e-12);
  const double by_chance = (9 + 25) / 64.0;
  EXPECT_NEAR(d["agreement"]["fleiss"], (0.75 - by_chance) / (1 - by_chance), 1e-12);
  ASSERT_EQ(d["pairs"].size(), 1u);
  EXPECT_NEAR(d["pairs"][0]["raw"], 0.75, 1e-12);
  EXPECT_NEAR(d["pairs"][0]["cohen"], 0.5, 1e-12);
  EXPECT_EQ(d["people"].size(), 2u);
  EXPECT_NEAR(d["people"][0]["seconds"], 1, 1e-12) << "two seconds a card of two";
  const json others = json::parse(t.page.handle(t.get("/api/standing", bob)).body);
  ASSERT_EQ(d["disagreements"].size(), 1u);
  EXPECT_EQ(d["disagreements"][0]["j"], 501);
  EXPECT_FALSE(others.contains("pairs") || others.contains("disagreements"));
  ASSERT_EQ(others["people"].size(), 1u) << "a person who is not the owner sees their own pace";
  EXPECT_EQ(others["people"][0]["name"], "bob");
}

TEST_F(LabelPageTest, AFailedWriteIsAnErrorOfTheServer) {
  io::write_file_atomically(t.folder + "/ledger.sqlite.writer",
                            "elsewhere 1 1\n");  // another process took the ledger over
  expect_refused(t.post("/api/answer", ann, t.card("ann", 1, kUuid)), 503);
}

}  // namespace
}  // namespace pal::launch
