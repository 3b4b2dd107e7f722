// file_labeler: questions and answers by files (labeler.h).

#include <filesystem>
#include <utility>

#include "core/io/files.h"
#include "core/oracle/labeler.h"
#include "core/oracle/ledger/inbox.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

class Exchange final : public Labeler {
 public:
  Exchange(const std::string& folder, SampleName name)
      : questions_(folder + "/questions.jsonl"), answers_(folder + "/answers.jsonl"), name_(std::move(name)) {}

  std::string name() const override { return "exchange"; }
  Answering answering() const override { return Answering::later; }

  void publish(const std::vector<Query>& open) override {
    std::string lines;
    for (const Query& q : open) lines += question_line(q, name_);
    if (lines == published_) return;
    io::write_file_atomically(questions_, lines);
    published_ = std::move(lines);
  }

  std::vector<Entry> collect(std::vector<std::string>& warnings) override {
    std::error_code error;
    if (!std::filesystem::exists(answers_, error)) return {};
    std::string text;
    try {
      text = read_answer_file(answers_);
      readable_ = true;
    } catch (const std::exception& e) {  // one bad file must not end the job
      if (std::exchange(readable_, false)) warnings.push_back(std::string("answers are passed over: ") + e.what());
      return {};
    }
    if (text.size() < read_) read_ = 0;  // the file was replaced by a new one
    const size_t end = text.rfind('\n');
    if (end == std::string::npos || end < read_) return {};
    ReadEntries read = read_entries(split_lines(text.substr(read_, end + 1 - read_)),
                                    "answers.jsonl from byte " + std::to_string(read_));
    for (const std::string& reason : read.reasons) warnings.push_back(reason);
    read_ = end + 1;
    return std::move(read.entries);
  }

 private:
  const std::string questions_, answers_;
  const SampleName name_;
  std::string published_ = "-";
  bool readable_ = true;
  size_t read_ = 0;  // bytes; a restarted run reads all lines again, and the ledger skips those that it knows
};

}  // namespace

std::unique_ptr<Labeler> make_file_labeler(const std::string& folder, SampleName name) {
  PAL_CHECK(!folder.empty(), "oracle.labeler=exchange needs a run folder", "", "use it with pal train");
  return std::make_unique<Exchange>(folder, std::move(name));
}

}  // namespace pal::oracle
