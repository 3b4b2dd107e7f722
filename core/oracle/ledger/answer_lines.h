// answer_lines: questions and answers as JSON, one object per line: the format of files, the inbox and the labeling
// page.
//
//   question   {"query": 12, "kind": "captcha", "template": 7, "members": [3, 1], "sampler": "captcha"}; coarse:
//              "node"; when names are given, "template_name" and "member_names": what the data set calls the samples
//   answer     {"query": 12, "member": 3, "answer": "yes", "annotator": "ann"}; optional: "template" (checked),
//              "seconds", "cost", "at" (seconds since 1970), "uuid" (an answer that is sent twice counts once; without
//              one it is made of query, member, answer and annotator, so that the same answer after an undo needs an
//              explicit uuid)
//   undo       {"undo": UUID, "annotator": "ann"}: withdraws the answer of ann with that uuid;
//              {"undo": UUID, "by": "bo"}: withdraws it of any annotator, in the name of bo, who owns the run
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

using SampleName = std::function<std::string(int64_t sample)>;  // empty: numbers are enough

std::string question_line(const Query& query, const SampleName& name = {});
std::string answer_line(const Answer& answer);
std::string undo_line(const Entry& entry);

// Throws Error (data) naming `where` and what is wrong with the line.
Query parse_question(const std::string& line, const std::string& where);
Entry parse_entry(const std::string& line, const std::string& where);
// Lines of a file, without empty ones.
std::vector<std::string> split_lines(const std::string& text);

}  // namespace pal::oracle
