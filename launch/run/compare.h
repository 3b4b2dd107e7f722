// compare: oracles × seeds × noise levels on one data set and budget: the list of runs, their results, and the summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/study/offline_study.h"

namespace pal::launch {

// The overrides of a command that trains nothing in steps: its config need not name steps and a learning rate.
std::vector<std::string> without_steps(std::vector<std::string> overrides);

// One run of a comparison.
struct CompareJob {
  study::StudyLine line;
  std::vector<std::string> overrides;  // of the config, for this run
  uint64_t seed = 0;
  double noise = 0;
  std::string file;         // of its result, in the folder
  std::string fingerprint;  // of all settings that the result depends on
};

// compare.lines × compare.seeds × compare.noise. A line is a map {name: careful, oracle.sampler: merging,
// graph.deduction: once, oracle.votes: 3}: settings by their keys, and answers: assumed (core/study/offline_study.h).
std::vector<CompareJob> compare_jobs(const std::string& config_path, const std::vector<std::string>& overrides,
                                     const std::string& folder);

struct CompareResult {
  CompareJob job;
  std::vector<study::StudyPoint> curve;
};
void write_result(const CompareJob& job, const std::vector<study::StudyPoint>& curve);
// The curve in the job's file; empty when there is none, or it is of other settings.
std::vector<study::StudyPoint> read_result(const CompareJob& job);

// What the lines have in common.
struct CompareSet {
  int64_t tests = 0;                          // test samples
  std::vector<std::string> labeled_at_start;  // lines that know one true label of each class before the first question
};
// compare.csv (every point of every run), summary.csv (mean and deviation over seeds), compare.svg (a row of panels for
// each noise level); the tables as text.
std::string write_summary(const std::vector<CompareResult>& results, const CompareSet& set, const std::string& folder);

}  // namespace pal::launch
