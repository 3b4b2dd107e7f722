// offline_study: one oracle on given features, from no question to a fixed budget, evaluated at points on the way. The
// query rounds of a run (core/oracle/round/round.h) and a linear representation, without images, ranks or files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/setup/run_spec.h"

namespace pal::study {

// Features of a training and a test set, with all labels.
struct StudyData {
  at::Tensor train, test;  // (n, D) float
  std::vector<int64_t> train_labels, test_labels;
  std::vector<int64_t> parents = {};  // taxonomy of the classes; empty: none
  int64_t classes = 0;
};
// data.train (data.limit of its samples, drawn by the seed) and data.test: feature files, or images, whose pixels are
// used; more columns than compare.pca are reduced to so many principal components of the training set.
using ReadProgress = std::function<void(const std::string& path, int64_t done, int64_t total)>;  // of images
StudyData read_study_data(const setup::RunSpec& spec, const ReadProgress& progress = {});

// Whether an oracle of these settings knows one true label of each class before its first question.
bool starts_from_templates(const setup::RunSpec& spec);

// Where answers come from.
enum class StudyAnswers {
  labeler,  // oracle.labeler; the majority of oracle.votes annotators, each paid for
  assumed,  // every question is answered yes, free of charge: what NNCLR does with its neighbors
};
struct StudyLine {
  std::string name;
  StudyAnswers answers = StudyAnswers::labeler;
};

struct StudyPoint {
  int64_t questions = 0;
  double cost = 0;
  double linear = 0, knn = 0;  // test error of a linear probe and of kNN with all labels, on the representation
  double own = 0;     // test error of a classifier with the labels answered or inferred so far, on the features
  int64_t known = 0;  // pairs of samples whose relation is answered or inferred
  int64_t alike = 0, alike_wrong = 0;  // of them "the same"; of these, wrong by the labels
  int64_t components = 0;
  int64_t contradictions = 0;
  double seconds = 0;  // spent choosing questions so far
};

// The points are before the first question and at the fractions 1/n … 1 of oracle.budget, n = compare.points. A sampler
// that has nothing left to ask ends early; its last point is repeated.
std::vector<StudyPoint> run_study(const setup::RunSpec& spec, const StudyLine& line, const StudyData& data,
                                  const std::function<void(int64_t questions)>& progress = {});

// For samplers that end by themselves, such as captcha: asks until nothing is left; how many questions that took.
struct Closure {
  int64_t questions = 0, rounds = 0;
  double seconds = 0;
  bool complete = false;  // every pair is answered or inferred
  bool right = false;     // and the labels agree
};
Closure run_to_closure(const setup::RunSpec& spec, const StudyData& data,
                       const std::function<void(int64_t questions)>& progress = {});

}  // namespace pal::study
