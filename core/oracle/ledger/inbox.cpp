#include "core/oracle/ledger/inbox.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/io/files.h"
#include "core/oracle/ledger/answer_lines.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

constexpr size_t kEntriesAtOnce = 5000;  // of a transaction: a sync for many files, and bounded memory

// Entries that the ledger refused, a sentence or "" for each, join the bad lines.
void join_refused(ReadEntries& read, const std::string* refused) {
  for (size_t k = 0; k < read.entries.size(); ++k) {
    if (refused[k].empty()) continue;
    read.bad_lines.push_back(read.lines[k]);
    read.reasons.push_back(refused[k]);
  }
}

}  // namespace

ReadEntries read_entries(const std::vector<std::string>& lines, const std::string& where) {
  ReadEntries read;
  for (size_t k = 0; k < lines.size(); ++k) {
    try {
      read.entries.push_back(parse_entry(lines[k], where + ":" + std::to_string(k + 1)));
      read.lines.push_back(lines[k]);
    } catch (const Error& e) {
      read.bad_lines.push_back(lines[k]);
      read.reasons.emplace_back(e.what());
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

int64_t Inbox::waiting() const {
  int64_t lines = 0;
  for (const std::string& name : files())
    lines += static_cast<int64_t>(split_lines(io::read_whole_file(folder_ + "/" + name)).size());
  return lines;
}

LedgerIntake Inbox::drain(Ledger& ledger, std::vector<std::string>& warnings) const {
  LedgerIntake all;
  const std::vector<std::string> names = files();
  for (size_t next = 0; next < names.size();) {
    const size_t first = next;
    std::vector<ReadEntries> read;
    std::vector<Entry> entries;
    for (; next < names.size() && (next == first || entries.size() < kEntriesAtOnce); ++next) {
      read.push_back(read_entries(split_lines(io::read_whole_file(folder_ + "/" + names[next])), names[next]));
      entries.insert(entries.end(), read.back().entries.begin(), read.back().entries.end());
    }
    const LedgerIntake intake = ledger.take(entries);
    all.recorded += intake.recorded;
    all.withdrawn += intake.withdrawn;
    all.known += intake.known;
    const std::string* refused = intake.refused.data();
    for (size_t k = 0; k < read.size(); ++k) {
      join_refused(read[k], refused);
      refused += read[k].entries.size();
      keep_rejected(names[first + k], read[k], warnings);
    }
    for (size_t k = first; k < next; ++k) std::filesystem::remove(folder_ + "/" + names[k]);
  }
  return all;
}

void Inbox::keep_rejected(const std::string& name, const ReadEntries& read, std::vector<std::string>& warnings) const {
  if (read.bad_lines.empty()) return;
  const std::string rejected = folder_ + "/rejected", stem = name.substr(0, name.size() - 6);
  std::filesystem::create_directories(rejected);
  io::write_file_atomically(rejected + "/" + stem + ".txt", joined_lines(read.reasons));
  io::write_file_atomically(rejected + "/" + name, joined_lines(read.bad_lines));
  warnings.push_back(std::to_string(read.bad_lines.size()) + " submitted answers are refused and kept in " + rejected +
                     "/" + name + "; the first: " + read.reasons[0]);
}

}  // namespace pal::oracle
