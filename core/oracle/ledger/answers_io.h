// answers_io: the ledger's answers as files of other programs, out and in.
//
//   jsonl         a line for each answer, with all the ledger knows of it; in: the lines of answer_lines.h
//   csv           task,worker,label (crowd-kit's columns), task = query:member; answers that stand
//   edges         i,j,weight: 1 the same, −1 different, as consensus has it
//   h5            the same edges as an HDF5 CSR group, as graph.pairs takes them; out only
//   label-studio  Label Studio's JSON: tasks with choices; in: its export of them
// A file's ending tells its format unless it is named: .jsonl, .csv, .h5 or .hdf5, .json (label-studio).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/ledger.h"

namespace pal::oracle {

enum class AnswerFormat { jsonl, csv, edges, h5, label_studio };
AnswerFormat answer_format(const std::string& name, const std::string& path);  // name "": by the path's ending

// How many answers or edges were written. samples: of the data set, for h5.
int64_t export_answers(const Ledger& ledger, const std::string& path, AnswerFormat format, ConsensusKind consensus,
                       int64_t samples);

// Lines for the inbox or the ledger: what can be read as entries, the rest with a reason. edges and h5 name pairs, not
// questions: they are refused.
ReadEntries import_answers(const std::string& path, AnswerFormat format, const std::string& annotator);

// What stands about each question after the answers so far, decided or not: for edges and labels.
std::vector<Decision> standing_decisions(const Ledger& ledger, ConsensusKind consensus);

}  // namespace pal::oracle
