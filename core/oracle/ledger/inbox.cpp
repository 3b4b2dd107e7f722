#include "core/oracle/ledger/inbox.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "core/io/files.h"
#include "core/io/regular_file.h"
#include "core/oracle/ledger/answer_lines.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

constexpr size_t kLinesAtOnce = 5000;  // of a transaction: a sync for many files, and bounded memory

// The reason why a line is refused, without the middle of a long value in it.
std::string short_reason(const std::string& reason) {
  constexpr size_t kBegin = 300, kEnd = 150;
  if (reason.size() <= kBegin + kEnd) return reason;
  return reason.substr(0, kBegin) + "..." + reason.substr(reason.size() - kEnd);
}

// Entries that the ledger refused, a sentence or "" for each, join the bad lines.
void join_refused(ReadEntries& read, const std::string* refused) {
  for (size_t k = 0; k < read.entries.size(); ++k) {
    if (refused[k].empty()) continue;
    read.bad_lines.push_back(read.lines[k]);
    read.reasons.push_back(short_reason(refused[k]));
  }
}

}  // namespace

std::string read_answer_file(const std::string& path) {
  std::string text = io::read_regular_file(path, kMaxAnswerBytes);
  const int64_t lines = std::count(text.begin(), text.end(), '\n');
  PAL_DATA_CHECK(lines <= kMaxAnswerLines, path + " has {} lines", lines,
                 "a file of answers has at most " + std::to_string(kMaxAnswerLines) + ": divide it, or remove it");
  return text;
}

ReadEntries read_entries(const std::vector<std::string>& lines, const std::string& where) {
  ReadEntries read;
  for (size_t k = 0; k < lines.size(); ++k) {
    const std::string place = where + ":" + std::to_string(k + 1);
    try {
      PAL_DATA_CHECK(lines[k].size() <= kMaxAnswerLine, place + " has {} bytes", lines[k].size(),
                     "a line has at most " + std::to_string(kMaxAnswerLine));
      read.entries.push_back(parse_entry(lines[k], place));
      read.lines.push_back(lines[k]);
    } catch (const Error& e) {
      read.bad_lines.push_back(lines[k]);
      read.reasons.push_back(short_reason(e.what()));
    }
  }
  return read;
}

LedgerIntake take_entries(Ledger& ledger, ReadEntries& read) {
  LedgerIntake intake = ledger.take(read.entries);
  join_refused(read, intake.refused.data());
  return intake;
}

Inbox::Inbox(const std::string& run_dir) : folder_(run_dir + "/inbox") {}

void Inbox::submit(const std::string& name, const std::string& lines) const {
  PAL_CHECK(!name.empty() && std::all_of(name.begin(), name.end(),
                                         [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; }),
            "name of submitted answers", name, "use letters, digits, - and _");
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  PAL_CHECK(!error, "cannot create the folder " + folder_, error.message(),
            "check that the run folder exists and that you may write there");
  io::write_file_atomically(folder_ + "/" + name + ".jsonl", lines);
}

std::vector<std::string> Inbox::files() const {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.front() != '.' && name.ends_with(".jsonl")) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The lines of a file, or nothing with a warning: one bad file must not end the job that reads the others. It is read
// again each round, because the trouble may pass.
std::optional<ReadEntries> Inbox::read(const std::string& name, std::vector<std::string>& warnings) {
  try {
    return read_entries(split_lines(read_answer_file(folder_ + "/" + name)), name);
  } catch (const std::exception& e) {
    warn_once(name, std::string("submitted answers are passed over: ") + e.what(), warnings);
    return std::nullopt;
  }
}

void Inbox::warn_once(const std::string& name, const std::string& sentence, std::vector<std::string>& warnings) {
  if (warned_.insert(name).second) warnings.push_back(sentence);
}

LedgerIntake Inbox::drain(Ledger& ledger, std::vector<std::string>& warnings) {
  LedgerIntake all;
  const std::vector<std::string> found = files();
  for (size_t next = 0; next < found.size();) {
    std::vector<std::string> names;
    std::vector<ReadEntries> read;
    std::vector<Entry> entries;
    for (size_t lines = 0; next < found.size() && lines < kLinesAtOnce; ++next) {
      std::optional<ReadEntries> one = this->read(found[next], warnings);
      if (!one) continue;
      lines += one->entries.size() + one->bad_lines.size();
      entries.insert(entries.end(), one->entries.begin(), one->entries.end());
      names.push_back(found[next]);
      read.push_back(std::move(*one));
    }
    const LedgerIntake intake = ledger.take(entries);
    all.recorded += intake.recorded;
    all.withdrawn += intake.withdrawn;
    all.known += intake.known;
    const std::string* refused = intake.refused.data();
    for (size_t k = 0; k < read.size(); ++k) {
      join_refused(read[k], refused);
      refused += read[k].entries.size();
      std::error_code error;  // a file that stays is read again, and its answers are known
      if (keep_rejected(names[k], read[k], warnings)) std::filesystem::remove(folder_ + "/" + names[k], error);
    }
  }
  return all;
}

bool Inbox::keep_rejected(const std::string& name, const ReadEntries& read, std::vector<std::string>& warnings) {
  if (read.bad_lines.empty()) return true;
  const std::string rejected = folder_ + "/rejected", stem = name.substr(0, name.size() - 6);
  const std::string sentence = std::to_string(read.bad_lines.size()) + " submitted answers are refused and kept in ";
  try {
    std::filesystem::create_directories(rejected);
    io::write_file_atomically(rejected + "/" + stem + ".txt", joined_lines(read.reasons));
    io::write_file_atomically(rejected + "/" + name, joined_lines(read.bad_lines));
  } catch (const std::exception& e) {
    warn_once(name, sentence + folder_ + "/" + name + ": " + e.what() + "; the first: " + read.reasons[0], warnings);
    return false;
  }
  warnings.push_back(sentence + rejected + "/" + name + "; the first: " + read.reasons[0]);
  return true;
}

}  // namespace pal::oracle
