#include "core/oracle/ledger/answer_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

using LineJson = nlohmann::json;

LineJson parsed_line(const std::string& line, const std::string& where) {
  const LineJson j = io::parse_json(line);
  PAL_DATA_CHECK(j.is_object(), where + " is not a JSON object", line.substr(0, 80),
                 "give one object per line: pal help oracles shows the format");
  return j;
}

int64_t line_integer(const LineJson& j, const char* key, const std::string& where) {
  PAL_DATA_CHECK(j.contains(key) && j[key].is_number_integer(), where + " lacks the whole number", key,
                 "give it: pal help oracles shows the lines");
  PAL_DATA_CHECK(!j[key].is_number_unsigned() || j[key].get<uint64_t>() < uint64_t{1} << 62, where + ": " + key,
                 j[key].dump(), "it is too large");
  return j[key].get<int64_t>();
}

double line_number(const LineJson& j, const char* key, double otherwise, const std::string& where) {
  if (!j.contains(key)) return otherwise;
  PAL_DATA_CHECK(j[key].is_number(), where + ": " + key, j[key].dump(), "give a number");
  return j[key].get<double>();
}

std::string line_text(const LineJson& j, const char* key, const std::string& otherwise, const std::string& where) {
  if (!j.contains(key)) return otherwise;
  PAL_DATA_CHECK(j[key].is_string() && !j[key].get<std::string>().empty(), where + ": " + key, j[key].dump(),
                 "give a text");
  return j[key].get<std::string>();
}

}  // namespace

std::string question_line(const Query& query, const SampleName& name) {
  nlohmann::ordered_json j = {{"query", query.id},
                              {"kind", to_string(query.kind)},
                              {"template", query.template_sample},
                              {"members", query.members}};
  if (query.node != kNoNode) j["node"] = query.node;
  if (!query.sampler.empty()) j["sampler"] = query.sampler;
  if (name) {
    j["template_name"] = name(query.template_sample);
    for (int64_t m : query.members) j["member_names"].push_back(name(m));
  }
  return j.dump(-1, ' ', false, LineJson::error_handler_t::replace) + "\n";
}

std::string answer_line(const Answer& a) {
  nlohmann::ordered_json j = {{"query", a.query},
                              {"template", a.i},
                              {"member", a.j},
                              {"answer", to_string(a.verdict)},
                              {"annotator", a.annotator}};
  if (a.seconds != 0) j["seconds"] = a.seconds;
  if (a.cost != 1) j["cost"] = a.cost;
  if (a.answered_at != 0) j["at"] = a.answered_at;
  if (!a.uuid.empty()) j["uuid"] = a.uuid;
  return j.dump(-1, ' ', false, LineJson::error_handler_t::replace) + "\n";
}

std::string undo_line(const Entry& entry) {
  const LineJson j = {{"undo", entry.undo},
                      entry.by.empty() ? LineJson{"annotator", entry.answer.annotator} : LineJson{"by", entry.by}};
  return j.dump(-1, ' ', false, LineJson::error_handler_t::replace) + "\n";
}

Query parse_question(const std::string& line, const std::string& where) {
  const LineJson j = parsed_line(line, where);
  Query q{line_integer(j, "query", where), query_kind(line_text(j, "kind", "pair", where)),
          line_integer(j, "template", where)};
  PAL_DATA_CHECK(j.contains("members") && j["members"].is_array(), where + " lacks", "members",
                 "give the list of samples");
  for (const LineJson& m : j["members"]) {
    PAL_DATA_CHECK(m.is_number_integer(), where + ": member", m.dump(), "give the numbers of samples");
    q.members.push_back(m.get<int64_t>());
  }
  if (j.contains("node")) q.node = line_integer(j, "node", where);
  q.sampler = line_text(j, "sampler", "-", where);
  return q;
}

Entry parse_entry(const std::string& line, const std::string& where) {
  const LineJson j = parsed_line(line, where);
  Entry entry;
  Answer& a = entry.answer;
  a.annotator = line_text(j, "annotator", "anonymous", where);
  a.uuid = line_text(j, "uuid", "", where);
  entry.undo = line_text(j, "undo", "", where);
  entry.by = line_text(j, "by", "", where);
  if (!entry.undo.empty()) return entry;
  a.query = line_integer(j, "query", where);
  a.j = line_integer(j, "member", where);
  a.i = j.contains("template") ? line_integer(j, "template", where) : -1;
  PAL_DATA_CHECK(j.contains("answer"), where + " lacks", "answer", "give yes, no, unsure, skip or broken");
  a.verdict = verdict(line_text(j, "answer", "", where));
  a.seconds = line_number(j, "seconds", 0, where);
  a.cost = line_number(j, "cost", 1, where);
  a.answered_at = line_number(j, "at", 0, where);
  return entry;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

}  // namespace pal::oracle
