// labeler: the labelers: the data set's labels with the errors and costs of people, pairs of a file, or people and
// other programs by files. The factory is make_labeler (oracle.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/weighted_edges.h"
#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/oracle.h"

namespace pal::oracle {

struct SimulatedOptions {
  double noise = 0;  // share of the answers that are flipped, drawn by (seed, Purpose::noise, query, member, annotator)
  uint64_t seed = 0;
  double cost = 1;         // of an answer
  double grid_cost = 0;    // of all members of a captcha or outliers query together; 0: each costs as a pair
  double coarse_cost = 0;  // of an answer to a coarse question; 0: as any other
  int64_t annotators = 1;
  std::vector<double> annotator_noise = {};  // of each; the last one repeats; empty: `noise`
};

// labels (N), −1 unknown: a question about such a sample is answered `unsure`. parents: for coarse questions. The
// vote-th annotator of a query is number (query + vote) modulo annotators.
std::unique_ptr<Labeler> make_simulated_labeler(std::vector<int64_t> labels, const SimulatedOptions& options,
                                                std::vector<int64_t> parents = {});

// yes where the pair's weight is positive, no where it is negative, unsure where there is no such pair.
std::unique_ptr<Labeler> make_pairs_labeler(graph::WeightedEdges pairs);

// Questions and answers by files. RUN/questions.jsonl holds all unanswered questions and is replaced as a whole
// (answer_lines.h describes the lines). People or programs append answers to RUN/answers.jsonl, or submit them through
// the inbox. A line counts once it ends with a newline; it may be read any number of times.
std::unique_ptr<Labeler> make_file_labeler(const std::string& folder, SampleName name);

}  // namespace pal::oracle
