#include "core/oracle/ledger/answers_io.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/graph/graph_files.h"
#include "core/io/csv.h"
#include "core/io/files.h"
#include "core/io/json.h"
#include "core/io/regular_file.h"
#include "core/oracle/ledger/answer_lines.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string json_text(const OrderedJson& j, int indent) {
  return j.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string as_jsonl(const std::vector<RecordedAnswer>& answers) {
  std::string lines;
  for (const RecordedAnswer& r : answers) {
    const Answer& a = r.answer;
    OrderedJson j = {{"id", r.id},           {"uuid", a.uuid},
                     {"query", a.query},     {"kind", to_string(r.kind)},
                     {"template", a.i},      {"member", a.j},
                     {"answer", r.said},     {"annotator", a.annotator},
                     {"seconds", a.seconds}, {"cost", a.cost},
                     {"at", a.answered_at},  {"sampler", r.sampler},
                     {"round", r.round},     {"model_step", r.model_step}};
    if (r.superseded_by != 0) j["superseded_by"] = r.superseded_by;
    lines += json_text(j, -1) + "\n";
  }
  return lines;
}

std::string as_csv(const std::vector<RecordedAnswer>& answers, int64_t* count) {
  std::string lines = "task,worker,label\n";
  for (const RecordedAnswer& r : answers) {
    if (r.superseded_by != 0 || r.said == "withdrawn") continue;
    lines += fmt::format("{}:{},{},{}\n", r.answer.query, r.answer.j, io::csv_field(r.answer.annotator), r.said);
    ++*count;
  }
  return lines;
}

// A line for parse_entry, made of fields that may be strings or numbers.
std::string entry_line(int64_t query, int64_t member, const std::string& label, const std::string& worker) {
  return json_text(OrderedJson{{"query", query}, {"member", member}, {"answer", label}, {"annotator", worker}}, -1);
}

std::vector<std::string> lines_of_csv(const std::string& path) {
  const auto rows = io::read_csv(path);
  const std::vector<std::string> head = {"task", "worker", "label"};
  PAL_DATA_CHECK(
      !rows.empty() && rows[0].size() >= 3 && std::vector<std::string>(rows[0].begin(), rows[0].begin() + 3) == head,
      path + " starts with", rows.empty() ? "nothing" : rows[0][0], "give the columns task,worker,label");
  std::vector<std::string> lines;
  for (size_t k = 1; k < rows.size(); ++k) {
    int64_t query = 0, member = 0;
    char rest = 0;
    const bool fits = rows[k].size() >= 3 && std::sscanf(rows[k][0].c_str(), "%ld:%ld%c", &query, &member, &rest) == 2;
    lines.push_back(fits ? entry_line(query, member, rows[k][2], io::plain_field(rows[k][1]))
                         : fmt::format("row {} with the task \"{}\", which is not query:member", k + 1, rows[k][0]));
  }
  return lines;
}

std::vector<std::string> lines_of_label_studio(const std::string& path, const std::string& annotator) {
  const OrderedJson tasks = io::parse_json<OrderedJson>(io::read_regular_file(path, kMaxAnswerBytes));
  PAL_DATA_CHECK(tasks.is_array(), path + " is not a list of Label Studio tasks", "JSON", "export as JSON");
  std::vector<std::string> lines;
  for (const OrderedJson& task : tasks) {
    const OrderedJson none = OrderedJson::array();
    for (const OrderedJson& annotation :
         task.is_object() && task.contains("annotations") ? task["annotations"] : none) {
      for (const OrderedJson& result :
           annotation.is_object() && annotation.contains("result") ? annotation["result"] : none) {
        try {
          OrderedJson j = {{"query", task.at("data").at("query")},
                           {"member", task.at("data").at("member")},
                           {"answer", result.at("value").at("choices").at(0)}};
          if (annotation.contains("annotator") && annotation["annotator"].is_string()) {
            j["annotator"] = annotation["annotator"];  // of our own export
          } else if (annotation.contains("completed_by")) {
            const OrderedJson& by = annotation["completed_by"];
            j["annotator"] = by.is_string()                           ? by.get<std::string>()
                             : by.is_object() && by.contains("email") ? by["email"].get<std::string>()
                                                                      : by.dump();
          } else {
            j["annotator"] = annotator;
          }
          if (annotation.contains("unique_id") && annotation["unique_id"].is_string())
            j["uuid"] = annotation["unique_id"];
          if (annotation.contains("lead_time") && annotation["lead_time"].is_number())
            j["seconds"] = annotation["lead_time"];
          lines.push_back(json_text(j, -1));
        } catch (const nlohmann::json::exception& e) {
          lines.push_back("task " + json_text(task, -1).substr(0, 60) + " lacks data.query, data.member or a choice");
        }
      }
    }
  }
  return lines;
}

}  // namespace

AnswerFormat answer_format(const std::string& name, const std::string& path) {
  const auto ends = [&](const char* ending) { return name.empty() && path.ends_with(ending); };
  if (name == "jsonl" || ends(".jsonl")) return AnswerFormat::jsonl;
  if (name == "csv" || ends(".csv")) return AnswerFormat::csv;
  if (name == "edges") return AnswerFormat::edges;
  if (name == "h5" || ends(".h5") || ends(".hdf5")) return AnswerFormat::h5;
  if (name == "label-studio" || ends(".json")) return AnswerFormat::label_studio;
  PAL_CHECK(false, "format of answers", name.empty() ? path : name, "choose jsonl, csv, edges, h5 or label-studio");
  return AnswerFormat::jsonl;
}

std::vector<Decision> standing_decisions(const Ledger& ledger, ConsensusKind consensus) {
  std::map<std::pair<int64_t, int64_t>, Decision> newest;
  for (const Decision& d : ledger.decisions()) newest[{d.query, d.j}] = d;
  const std::vector<Question> all =
      consensus == ConsensusKind::dawid_skene ? ledger.questions_with_answers() : std::vector<Question>{};
  for (const Decision& d : decide(ledger.to_decide(), consensus, all, 0)) newest[{d.query, d.j}] = d;
  std::vector<Decision> decisions;
  for (const auto& [question, d] : newest) {
    if (d.verdict != Verdict::skip) decisions.push_back(d);
  }
  return decisions;
}

int64_t export_answers(const Ledger& ledger, const std::string& path, AnswerFormat format, ConsensusKind consensus,
                       int64_t samples, const TaskContent& content) {
  int64_t count = 0;
  if (format == AnswerFormat::jsonl) {
    const std::vector<RecordedAnswer> answers = ledger.all_answers();
    io::write_file_atomically(path, as_jsonl(answers));
    return static_cast<int64_t>(answers.size());
  }
  if (format == AnswerFormat::csv || format == AnswerFormat::label_studio) {
    const std::vector<RecordedAnswer> answers = ledger.all_answers();
    io::write_file_atomically(
        path, format == AnswerFormat::csv ? as_csv(answers, &count) : label_studio_answers(answers, content, &count));
    return count;
  }
  std::map<std::pair<int64_t, int64_t>, double> edges;  // the newest decision about a pair
  for (const Decision& d : standing_decisions(ledger, consensus)) {
    if (d.relation() != graph::Relation::unknown)
      edges[std::minmax(d.i, d.j)] = d.relation() == graph::Relation::same ? 1 : -1;
  }
  if (format == AnswerFormat::edges) {
    std::string lines = "i,j,weight\n";
    for (const auto& [pair, weight] : edges) lines += fmt::format("{},{},{:g}\n", pair.first, pair.second, weight);
    io::write_file_atomically(path, lines);
  } else {
    std::vector<graph::WeightedPair> pairs;
    for (const auto& [pair, weight] : edges) pairs.push_back({pair.first, pair.second, weight});
    graph::write_pairs(path, graph::WeightedEdges(samples, std::move(pairs), path));
  }
  return static_cast<int64_t>(edges.size());
}

ReadEntries import_answers(const std::string& path, AnswerFormat format, const std::string& annotator) {
  PAL_CHECK(format != AnswerFormat::edges && format != AnswerFormat::h5, "edges name pairs, not questions", path,
            "answer questions (jsonl, csv, label-studio), or train with graph.pairs=" + path);
  std::vector<std::string> lines;
  if (format == AnswerFormat::jsonl) lines = split_lines(read_answer_file(path));
  if (format == AnswerFormat::csv) lines = lines_of_csv(path);
  if (format == AnswerFormat::label_studio) lines = lines_of_label_studio(path, annotator);
  ReadEntries read = read_entries(lines, path);
  for (Entry& e : read.entries) {
    if (e.answer.annotator == "anonymous") e.answer.annotator = annotator;
  }
  return read;
}

}  // namespace pal::oracle
