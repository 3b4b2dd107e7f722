// answers_io: exports the ledger's answers to files of other programs, and imports answers from them.
//
//   jsonl         a line for each answer, with all that the ledger holds; import: the lines of answer_lines.h
//   csv           task,worker,label (crowd-kit's columns), task = query:member; without withdrawn answers
//   edges         i,j,weight: 1 the same, −1 different, by consensus
//   h5            the same edges as an HDF5 CSR group, as graph.pairs reads them; export only
//   label-studio  Label Studio's JSON: tasks with choices (label_studio.h); import: its export of them
// The format is given by name or by the file's ending: .jsonl, .csv, .h5 or .hdf5, .json (label-studio).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/label_studio.h"
#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

enum class AnswerFormat { jsonl, csv, edges, h5, label_studio };
AnswerFormat answer_format(const std::string& name, const std::string& path);  // name "": by the path's ending

// How many answers or edges were written. samples: of the data set, for h5. content: of label-studio's tasks.
int64_t export_answers(const Ledger& ledger, const std::string& path, AnswerFormat format, ConsensusKind consensus,
                       int64_t samples, const TaskContent& content = {});

// Entries for the inbox or the ledger, and a reason for each line that cannot be read. edges and h5 name pairs, not
// questions: they are refused.
ReadEntries import_answers(const std::string& path, AnswerFormat format, const std::string& annotator);

// The newest decision about each question, and decisions about those that the run has not decided yet.
std::vector<Decision> standing_decisions(const Ledger& ledger, ConsensusKind consensus);

}  // namespace pal::oracle
