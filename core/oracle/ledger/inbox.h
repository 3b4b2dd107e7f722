// inbox: how everybody but the ledger's writer hands in answers: a file of lines in RUN/inbox, put there by rename.
//
// A file NAME.jsonl holds lines of answer_lines.h. It is written under a name that begins with a dot, synced, and renamed:
// the writer sees whole files only. Handing in the same name again replaces it, and the ledger takes an uuid once: doing
// it twice does no harm, so whoever is not sure whether it was done does it again.
// The writer drains the inbox once a round: what is right enters the ledger, many files in one transaction, and only then
// the files are removed; lines
// that are wrong are kept in inbox/rejected/NAME.jsonl, each with the reason behind it in NAME.txt.
// Thread: submit() any number of threads and processes; drain() the ledger's writer alone.
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

  // On disk when it returns. `name`: letters, digits, '-' and '_'; the uuid of an answer is a good one.
  void submit(const std::string& name, const std::string& lines) const;
  // Lines wait to be drained.
  int64_t waiting() const;
  // Into the ledger; sentences about what was refused are added to `warnings`.
  LedgerIntake drain(Ledger& ledger, std::vector<std::string>& warnings) const;

 private:
  std::vector<std::string> files() const;  // by name
  void keep_rejected(const std::string& name, const ReadEntries& read, std::vector<std::string>& warnings) const;
  std::string folder_;
};

ReadEntries read_entries(const std::vector<std::string>& lines, const std::string& where);
// Into the ledger; refused ones join the bad lines.
LedgerIntake take_entries(Ledger& ledger, ReadEntries& read);

}  // namespace pal::oracle
