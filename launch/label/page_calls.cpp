// page_calls: the calls of the page's script: questions out, answers in, figures, review.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "launch/label/page.h"

namespace pal::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kUuid = 32, kMostAnswers = 1000, kExamples = 4, kRecent = 5;
constexpr int64_t kMostCards = 10, kPastCards = 30;

PageResponse as_json(const Json& j, int status = 200) {
  return {status, "application/json", j.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

// wrong: the sentence with which the caller refuses the body; "" when it is a JSON object.
struct Read {
  std::string wrong;
  Json json;
};
Read read_body(const std::string& body) {
  Read read;
  read.json = io::parse_json<Json>(body);
  if (!read.json.is_object()) read.wrong = "the body is not a JSON object";
  return read;
}

bool is_uuid(const Json& j, const char* key) {
  if (!j.contains(key) || !j[key].is_string()) return false;
  const std::string text = j[key].get<std::string>();
  return text.size() == kUuid && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_number(const Json& j) { return j.is_number_unsigned() && j.get<uint64_t>() < uint64_t{1} << 62; }

std::optional<oracle::Verdict> read_verdict(const Json& j) {
  for (const oracle::Verdict v : {oracle::Verdict::yes, oracle::Verdict::no, oracle::Verdict::unsure,
                                  oracle::Verdict::skip, oracle::Verdict::broken}) {
    if (j.is_string() && j.get<std::string>() == to_string(v)) return v;
  }
  return std::nullopt;
}

std::string read_card(const Json& j, label::CardAnswer& card) {
  if (!is_uuid(j, "uuid")) return "uuid is 32 hexadecimal digits";
  if (!j.contains("query") || !is_number(j["query"])) return "query is a whole number";
  if (!j.contains("answers") || !j["answers"].is_array() || j["answers"].empty() || j["answers"].size() > kMostAnswers)
    return "answers is a list of 1 to 1000";
  card.uuid = j["uuid"];
  card.query = j["query"];
  std::set<int64_t> members;
  for (const Json& pair : j["answers"]) {
    if (!pair.is_array() || pair.size() != 2 || !is_number(pair[0])) return "an answer is [member, verdict]";
    const std::optional<oracle::Verdict> said = read_verdict(pair[1]);
    if (!said) return "a verdict is yes, no, unsure, skip or broken";
    if (!members.insert(pair[0].get<int64_t>()).second) return "a member is answered twice";
    card.verdicts.emplace_back(pair[0].get<int64_t>(), *said);
  }
  if (j.contains("seconds")) {
    if (!j["seconds"].is_number()) return "seconds is a number";
    const double seconds = j["seconds"];
    if (!std::isfinite(seconds) || seconds < 0) return "seconds is a number from 0";
    card.seconds = std::min(seconds, 3600.0);
  }
  if (j.contains("replaces")) {
    if (!is_uuid(j, "replaces")) return "replaces is 32 hexadecimal digits";
    card.replaces = j["replaces"];
  }
  return "";
}

// Other members of the template's component: the page shows them beside it.
std::vector<int64_t> examples_of(const label::LabelStats* stats, const oracle::Query& q) {
  std::vector<int64_t> examples;
  if (stats == nullptr || !stats->store || q.template_sample < 0 || q.template_sample >= stats->store->samples())
    return examples;
  const auto of_component = stats->examples.find(stats->store->component(q.template_sample));
  if (of_component == stats->examples.end()) return examples;
  for (const int64_t i : of_component->second) {
    if (examples.size() == kExamples) break;
    if (i != q.template_sample && !std::count(q.members.begin(), q.members.end(), i)) examples.push_back(i);
  }
  return examples;
}

Json verdict_list(const std::vector<std::pair<int64_t, oracle::Verdict>>& verdicts) {
  Json list = Json::array();
  for (const auto& [member, verdict] : verdicts) list.push_back({member, to_string(verdict)});
  return list;
}

Json disagreement_list(const label::LabelStats& s, size_t most) {
  Json list = Json::array();
  for (size_t k = 0; k < std::min(most, s.disagreements.size()); ++k) {
    const label::Disagreement& d = s.disagreements[k];
    Json said = Json::array();
    for (const auto& [who, what] : d.said) said.push_back({who, what});
    list.push_back({{"query", d.query}, {"i", d.i}, {"j", d.j}, {"said", said}});
  }
  return list;
}

}  // namespace

// A person who has a session and opens a used link again keeps the session.
PageResponse LabelPage::enter(const PageRequest& r, const label::User* person) {
  const Read read = read_body(r.body);
  if (!read.wrong.empty()) return refuse(r, 400, read.wrong);
  if (!read.json.contains("token") || !read.json["token"].is_string()) return refuse(r, 400, "token is a text");
  using Entry = label::Users::Entry;
  const label::Users::Visit visit = people_.enter(read.json["token"]);
  if (visit.entry == Entry::used && visit.person == person) return as_json({{"person", person->name}});
  if (visit.entry != Entry::granted && !refusals_.allow(network_of(r.address), run_.now()))
    return refuse(r, 429, "too many invalid links: wait a minute");
  if (visit.entry == Entry::used)
    return refuse(r, 403, "this link was used before: ask the person who runs pal label for your next link");
  if (visit.entry == Entry::unknown)
    return refuse(r, 403, "this link is unknown: ask the person who runs pal label for one");
  run_.log(fmt::format("{} signed in from {}", log_text(visit.person->name), log_text(r.address)));
  PageResponse response = as_json({{"person", visit.person->name}});
  response.headers.emplace_back("Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000",
                                                          cookie_name(hosts_.port), visit.cookie));
  return response;
}

PageResponse LabelPage::questions(const PageRequest& r, const label::User& person) {
  int64_t count = 3;
  if (const auto n = r.parameters.find("n"); n != r.parameters.end() && n->second.size() == 1)
    count = std::clamp<int64_t>(n->second[0] - '0', 1, kMostCards);
  const std::shared_ptr<const label::LabelStats> stats = run_.stats();
  Json cards = Json::array();
  for (const oracle::Query& q : service_.next(person.name, run_.now(), count)) {
    Json card = {{"query", q.id},
                 {"kind", to_string(q.kind)},
                 {"template", q.template_sample},
                 {"members", q.members},
                 {"examples", examples_of(stats.get(), q)},
                 {"ticket", tokens_.ticket(person.name, q.id)}};
    if (q.node != oracle::kNoNode) card["node"] = run_.node_name(q.node);
    if (const std::string name = run_.class_name(q.template_sample); !name.empty()) card["class"] = name;
    cards.push_back(std::move(card));
  }
  const RunFacts facts = run_.facts();
  return as_json({{"person", person.name},
                  {"owner", person.role == label::Role::owner},
                  {"images", facts.images},
                  {"question", facts.words.question},
                  {"instructions", facts.words.instructions},
                  {"why", !cards.empty()                ? ""
                          : service_.queue().open() > 0 ? "the remaining questions are assigned to other people"
                                                        : facts.why},
                  {"cards", cards}});
}

PageResponse LabelPage::answer(const PageRequest& r, const label::User& person) {
  const Read read = read_body(r.body);
  if (!read.wrong.empty()) return refuse(r, 400, read.wrong);
  label::CardAnswer card;
  card.person = person.name;
  if (const std::string wrong = read_card(read.json, card); !wrong.empty()) return refuse(r, 400, wrong);
  const bool has_ticket = read.json.contains("ticket") && read.json["ticket"].is_string();
  if (!has_ticket ||
      !label::Tokens::equal(read.json["ticket"].get<std::string>(), tokens_.ticket(person.name, card.query))) {
    return refuse(r, 403, "this question was not given to you");
  }
  if (const std::string reason = service_.record(card); !reason.empty()) return refuse(r, 409, reason);
  return as_json({{"recorded", card.uuid}});
}

PageResponse LabelPage::undo(const PageRequest& r, const label::User& person) {
  const Read read = read_body(r.body);
  if (!read.wrong.empty()) return refuse(r, 400, read.wrong);
  if (!is_uuid(read.json, "uuid")) return refuse(r, 400, "uuid is 32 hexadecimal digits");
  const std::string uuid = read.json["uuid"];
  if (const std::string reason = service_.undo(person.name, uuid); !reason.empty()) return refuse(r, 409, reason);
  return as_json({{"taken_back", uuid}});
}

PageResponse LabelPage::mine(const PageRequest&, const label::User& person) {
  Json cards = Json::array();
  for (const label::PastCard& p : service_.past(person.name, kPastCards)) {
    cards.push_back({{"uuid", p.uuid},
                     {"query", p.query},
                     {"kind", to_string(p.kind)},
                     {"template", p.template_sample},
                     {"answers", verdict_list(p.verdicts)},
                     {"at", p.answered_at},
                     {"ticket", tokens_.ticket(person.name, p.query)}});
  }
  return as_json({{"cards", cards}});
}

PageResponse LabelPage::stats(const PageRequest&, const label::User& person) {
  const RunFacts facts = run_.facts();
  Json j = {{"run", facts.name},          {"samples", facts.samples},         {"classes", facts.classes},
            {"budget", facts.budget},     {"queue", service_.queue().open()}, {"measure", facts.measure},
            {"accuracy", facts.accuracy}, {"trained_on", facts.trained_on},   {"unused", facts.unused}};
  const std::shared_ptr<const label::LabelStats> s = run_.stats();
  if (!s) return as_json(j);
  j.update({{"questions", s->questions},
            {"open", s->open},
            {"answered", s->answered},
            {"answers", s->answers},
            {"told", s->answered_pairs},
            {"known", s->known},
            {"components", s->components},
            {"unsure", s->unsure},
            {"broken", s->broken},
            {"cost", s->cost},
            {"seconds", s->seconds},
            {"timed", s->timed},
            {"no", s->no},
            {"disputes", s->disputes.size()}});
  j["history"] = Json::array();
  for (const label::HistoryPoint& p : s->history) j["history"].push_back({p.answered, p.known, p.components});
  j["agreement"] = {{"questions", s->agreement.questions}, {"raw", s->agreement.raw}, {"fleiss", s->agreement.fleiss}};
  // A person sees their own pace; the owner sees all.
  j["people"] = Json::array();
  for (const oracle::AnnotatorPace& p : s->agreement.annotators) {
    if (person.role != label::Role::owner && p.annotator != person.name) continue;
    Json entry = {{"name", p.annotator}, {"answers", p.answers}, {"taken_back", p.withdrawn}, {"seconds", p.seconds}};
    if (const auto gold = s->gold.find(p.annotator); gold != s->gold.end())
      entry["gold"] = {gold->second.right, gold->second.of};
    j["people"].push_back(std::move(entry));
  }
  if (person.role != label::Role::owner) return as_json(j);
  j["disagreements"] = disagreement_list(*s, kRecent);
  j["pairs"] = Json::array();
  for (const oracle::PairAgreement& p : s->agreement.pairs)
    j["pairs"].push_back({{"a", p.a}, {"b", p.b}, {"questions", p.questions}, {"raw", p.raw}, {"cohen", p.cohen}});
  return as_json(j);
}

PageResponse LabelPage::review(const PageRequest&, const label::User&) {
  Json j = {{"disputes", Json::array()}, {"disagreements", Json::array()}};
  const std::shared_ptr<const label::LabelStats> s = run_.stats();
  if (!s) return as_json(j);
  constexpr size_t kShown = 20;
  for (size_t k = 0; k < std::min(kShown, s->disputes.size()); ++k) {
    const label::Dispute& d = s->disputes[k];
    Json chain = Json::array();
    for (const label::AskedLink& l : d.chain) {
      chain.push_back({{"i", l.link.i},
                       {"j", l.link.j},
                       {"same", l.link.relation == graph::Relation::same},
                       {"query", l.query},
                       {"member", l.member}});
    }
    j["disputes"].push_back({{"query", d.answer.query},
                             {"i", d.answer.i},
                             {"j", d.answer.j},
                             {"same", d.answer.relation() == graph::Relation::same},
                             {"chain", chain}});
  }
  j["disagreements"] = disagreement_list(*s, s->disagreements.size());
  return as_json(j);
}

PageResponse LabelPage::resolve(const PageRequest& r, const label::User& person) {
  const Read read = read_body(r.body);
  if (!read.wrong.empty()) return refuse(r, 400, read.wrong);
  const Json& j = read.json;
  if (!is_uuid(j, "uuid")) return refuse(r, 400, "uuid is 32 hexadecimal digits");
  if (!j.contains("query") || !is_number(j["query"]) || !j.contains("member") || !is_number(j["member"]))
    return refuse(r, 400, "query and member are whole numbers");
  const std::optional<oracle::Verdict> said = j.contains("answer") ? read_verdict(j["answer"]) : std::nullopt;
  if (!said) return refuse(r, 400, "a verdict is yes, no, unsure, skip or broken");
  const std::string reason = service_.resolve(person.name, j["uuid"], j["query"], j["member"], *said);
  if (!reason.empty()) return refuse(r, 409, reason);
  return as_json({{"settled", j["query"]}});
}

}  // namespace pal::launch
