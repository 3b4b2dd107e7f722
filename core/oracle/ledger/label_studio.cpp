#include "core/oracle/ledger/label_studio.h"

#include <map>
#include <nlohmann/json.hpp>

namespace pal::oracle {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& tasks) { return tasks.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json task(const Query& q, int64_t member, const TaskContent& content) {
  Json data = {{"query", q.id}, {"kind", to_string(q.kind)}, {"template", q.template_sample}, {"member", member}};
  if (content.question) data["question"] = content.question(q.kind, q.node);
  if (!content.instructions.empty()) data["instructions"] = content.instructions;
  if (content.name) {
    data["template_name"] = content.name(q.template_sample);
    data["member_name"] = content.name(member);
  }
  if (content.picture) {
    data["template_picture"] = content.picture(q.template_sample);
    data["member_picture"] = content.picture(member);
  }
  return {{"data", std::move(data)}};
}

}  // namespace

std::string label_studio_tasks(const std::vector<Query>& queries, const TaskContent& content) {
  Json tasks = Json::array();
  for (const Query& q : queries) {
    for (const int64_t member : q.members) tasks.push_back(task(q, member, content));
  }
  return text_of(tasks);
}

std::string label_studio_answers(const std::vector<RecordedAnswer>& answers, const TaskContent& content,
                                 int64_t* count) {
  Json tasks = Json::array();  // in the order in which they were first answered
  std::map<std::pair<int64_t, int64_t>, size_t> place;
  for (const RecordedAnswer& r : answers) {
    if (r.superseded_by != 0 || r.said == "withdrawn") continue;
    const Answer& a = r.answer;
    const auto [at, first] = place.try_emplace({a.query, a.j}, tasks.size());
    if (first) {
      tasks.push_back(task({a.query, r.kind, a.i, {a.j}}, a.j, content));
      tasks.back()["id"] = tasks.size();
      tasks.back()["annotations"] = Json::array();
    }
    // Label Studio takes completed_by only as the email or number of one of its users.
    tasks[at->second]["annotations"].push_back({{"annotator", a.annotator},
                                                {"unique_id", a.uuid},
                                                {"lead_time", a.seconds},
                                                {"result", Json::array({{{"from_name", "same"},
                                                                         {"to_name", "pair"},
                                                                         {"type", "choices"},
                                                                         {"value", {{"choices", {r.said}}}}}})}});
    ++*count;
  }
  return text_of(tasks);
}

// Every word that a user chose is in the tasks' data: the XML holds none of it.
std::string label_studio_config(const TaskContent& content) {
  const bool pictures = static_cast<bool>(content.picture);
  const auto side = [&](const char* title, const std::string& tag, const std::string& of) {
    return std::string("    <View style=\"flex: 1\">\n      <Header value=\"") + title +
           "\" size=\"5\"/>\n      <Header value=\"$" + of + "_name\" size=\"6\"/>\n      <" +
           (pictures ? "Image" : "Text") + " name=\"" + tag + "\" value=\"$" + of + (pictures ? "_picture" : "_name") +
           "\"/>\n    </View>\n";
  };
  std::string choices;
  for (const Verdict v : {Verdict::yes, Verdict::no, Verdict::unsure, Verdict::skip, Verdict::broken}) {
    const std::string name = to_string(v);
    choices += "    <Choice value=\"" + name + "\" hotkey=\"" + name.front() + "\"/>\n";
  }
  return "<View>\n  <Header value=\"$question\" size=\"3\"/>\n" +
         std::string(content.instructions.empty() ? "" : "  <Header value=\"$instructions\" size=\"6\"/>\n") +
         "  <View style=\"display: flex; gap: 1em\">\n" + side("Compare with", "template", "template") +
         side("This one", "pair", "member") +
         "  </View>\n  <Choices name=\"same\" toName=\"pair\" choice=\"single\" required=\"true\" "
         "showInline=\"true\">\n" +
         choices + "  </Choices>\n</View>\n";
}

}  // namespace pal::oracle
