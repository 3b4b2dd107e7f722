// samples: the parts of a report that need the encoder and the data: neighbors of test samples, the plane of the features,
// the questions with their pictures. Where one of them is missing, a sentence stands in its place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/run/run_summary.h"

namespace pal::launch {

struct SampleOptions {
  int64_t queries = 10, neighbors = 7;  // rows and columns of the montage
  int64_t train = 4000, test = 2000;     // samples that are embedded
  int64_t questions = 40;                // of the ledger, the last ones
};

struct SampleParts {
  std::string neighbors, plane;  // HTML
};
SampleParts sample_parts(const RunSummary& run, const SampleOptions& options);

// The last questions of the run's ledger with the answers; "" when it never asked.
std::string question_table(const RunSummary& run, const SampleOptions& options);

}  // namespace pal::launch
