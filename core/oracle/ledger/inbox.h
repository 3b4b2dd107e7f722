// inbox: how processes that do not write the ledger submit answers: a file of lines in RUN/inbox.
//
// A file NAME.jsonl holds lines of answer_lines.h. It is written under a name that starts with a dot, synced and
// renamed, so that the writer sees whole files only. Submitting the same name again replaces the file, and the ledger
// records an uuid once, so a sender that does not know whether it succeeded submits again.
// The writer drains the inbox once a round: valid answers enter the ledger, many files in one transaction, and only
// then the files are removed. Invalid lines are kept in inbox/rejected/NAME.jsonl, with their reasons in NAME.txt. What
// cannot be read (a folder, a pipe, a dangling link, a file above the limits) is skipped with a warning.
// Thread: any number of threads and processes call submit(); only the ledger's writer calls drain().
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

// Of a file of answers: what is above one of the first two is refused as a whole, a longer line is a bad line.
inline constexpr uint64_t kMaxAnswerBytes = 256 << 20;
inline constexpr int64_t kMaxAnswerLines = 2'000'000;
inline constexpr size_t kMaxAnswerLine = 1 << 16;

// Lines of one file as entries; a line that cannot be read becomes a sentence.
struct ReadEntries {
  std::vector<Entry> entries = {};
  std::vector<std::string> lines = {};  // of each entry
  std::vector<std::string> bad_lines = {}, reasons = {};
};

class Inbox {
 public:
  explicit Inbox(const std::string& run_dir);

  // On disk when it returns. `name`: letters, digits, '-' and '_'; for example the uuid of an answer.
  void submit(const std::string& name, const std::string& lines) const;
  // Records the entries in the ledger; adds a sentence to `warnings` for each file with entries that were refused, and
  // once for each file that cannot be read.
  LedgerIntake drain(Ledger& ledger, std::vector<std::string>& warnings);

 private:
  std::vector<std::string> files() const;  // by name
  std::optional<ReadEntries> read(const std::string& name, std::vector<std::string>& warnings);
  // Whether they are kept there.
  bool keep_rejected(const std::string& name, const ReadEntries& read, std::vector<std::string>& warnings);
  void warn_once(const std::string& name, const std::string& sentence, std::vector<std::string>& warnings);

  std::string folder_;
  std::set<std::string> warned_;  // files that a warning named
};

// The content of a file of lines. Throws Error (data) when it cannot be read or is above the limits.
std::string read_answer_file(const std::string& path);
ReadEntries read_entries(const std::vector<std::string>& lines, const std::string& where);
// Records the entries in the ledger; refused ones are added to the bad lines.
LedgerIntake take_entries(Ledger& ledger, ReadEntries& read);

}  // namespace pal::oracle
