// label_studio: questions and answers as Label Studio's tasks: a task for each question, a choice for its answer.
//
// A task's data names the question (query, member), by which import_answers (answers_io.h) reads the answer back, and
// holds all that a person needs: names, pictures as data: URLs, the words of the question. Nothing is loaded elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

// What people see. Without a function its fields are left out.
struct TaskContent {
  std::function<std::string(int64_t sample)> name = {}, picture = {};      // picture: a URL; "": none
  std::function<std::string(QueryKind kind, int64_t node)> question = {};  // answered by yes or no
  std::string instructions = {};
};

// JSON to import into a project whose labeling interface is label_studio_config().
std::string label_studio_tasks(const std::vector<Query>& queries, const TaskContent& content);
// The standing answers as annotations of their tasks; adds their number to *count.
std::string label_studio_answers(const std::vector<RecordedAnswer>& answers, const TaskContent& content,
                                 int64_t* count);
std::string label_studio_config(const TaskContent& content);  // XML

}  // namespace pal::oracle
