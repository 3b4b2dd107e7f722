// inbox: how processes that do not write the ledger submit answers: a file of lines in RUN/inbox.
//
// A file NAME.jsonl holds lines of answer_lines.h. It is written under a name that starts with a dot, synced, and
//   renamed:
// the writer sees whole files only. Submitting the same name again replaces the file, and the ledger records an uuid
// once, so a sender that does not know whether it succeeded submits again.
// The writer drains the inbox once a round: valid answers enter the ledger, many files in one transaction, and only
// then the files are removed. Invalid lines are kept in inbox/rejected/NAME.jsonl, with their reasons in NAME.txt.
// Thread: any number of threads and processes call submit(); only the ledger's writer calls drain().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

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
  // Files that wait to be drained.
  int64_t waiting() const;
  // Records the entries in the ledger; adds a sentence to `warnings` for each one that was refused.
  LedgerIntake drain(Ledger& ledger, std::vector<std::string>& warnings) const;

 private:
  std::vector<std::string> files() const;  // by name
  void keep_rejected(const std::string& name, const ReadEntries& read, std::vector<std::string>& warnings) const;
  std::string folder_;
};

ReadEntries read_entries(const std::vector<std::string>& lines, const std::string& where);
// Records the entries in the ledger; refused ones are added to the bad lines.
LedgerIntake take_entries(Ledger& ledger, ReadEntries& read);

}  // namespace pal::oracle
