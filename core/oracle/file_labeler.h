// file_labeler: questions and answers by files, for people or another program.
//
// RUN/questions.jsonl holds all open questions and is replaced as a whole (answer_lines.h has the lines). Answers are
// appended to RUN/answers.jsonl by whoever gives them, or handed in through the inbox. A line counts once its end is
// written; it may be read any number of times.
#pragma once

#include <memory>
#include <string>

#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/oracle.h"

namespace pal::oracle {

std::unique_ptr<Labeler> make_file_labeler(const std::string& folder, SampleName name);

}  // namespace pal::oracle
