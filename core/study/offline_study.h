// offline_study: one oracle on given features, from nothing to a fixed budget, and what it has brought at points on the way. The whole
// loop of a run (pool, questions, answers, graph, representation) without images, ranks or files.
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
// data.train and data.test: feature files, or images of one size, whose pixels are taken; more columns than compare.pca are
// reduced to so many principal components of the training set.
StudyData read_study_data(const setup::RunSpec& spec);

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
  double own = 0;     // test error of a classifier that has only the labels known or implied so far, on the features
  int64_t known = 0;  // pairs of samples whose relation is known or implied
  int64_t alike = 0, alike_wrong = 0;  // of them alike; of these, not as the labels say
  int64_t components = 0;
  int64_t contradictions = 0;
  double seconds = 0;  // spent choosing questions so far
};

// Points: before the first question and at the fractions 1/n … 1 of oracle.budget, n = compare.points. A sampler that has nothing
// left to ask ends early; its last point stands for the rest.
std::vector<StudyPoint> run_study(const setup::RunSpec& spec, const StudyLine& line, const StudyData& data,
                                  const std::function<void(int64_t questions)>& progress = {});

// Captcha and others that end by themselves: asks until nothing is open; the questions it took.
struct Closure {
  int64_t questions = 0, rounds = 0;
  double seconds = 0;
  bool complete = false;  // every pair is known or implied
  bool right = false;     // and as the labels say
};
Closure run_to_closure(const setup::RunSpec& spec, const StudyData& data,
                       const std::function<void(int64_t questions)>& progress = {});

}  // namespace pal::study
