// linear_probe: the accuracy of a linear classifier on frozen features.
//
// Math:   features standardized by the training set's mean and deviation, then either
//         lbfgs: softmax regression with ridge λ‖W‖²/2, minimized on the whole training set (convex: the result does
//                not depend on a seed or learning rate), or
//         ridge: least squares on ±one-hot targets, W = (XᵀX/n + λI)⁻¹ XᵀY/n in one factorization, which is faster.
//         The ridge is given, or chosen by a part of the training set that is left out (choose_ridge).
//         For the common recipe, SGD on augmented views, see finetune.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/eval/scores.h"

namespace pal::eval {

enum class ProbeMethod { lbfgs, ridge };
struct ProbeOptions {
  double ridge = 1e-4;
  int iterations = 100;
  ProbeMethod method = ProbeMethod::lbfgs;
  std::function<void()> progress = {};  // called after each pass over the training rows
};

// (n, F) features and (n) labels; rows with label −1 are ignored. Deterministic.
Accuracy linear_probe(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
                      const std::vector<int64_t>& test_labels, int64_t classes, const ProbeOptions& options);

// The ridge, of 1e-5, 1e-4, … 1, whose classifier of four fifths of the training rows is best on the other fifth, drawn
// from each class; of equal ones that nearest to options.ridge. The test set has no part in it. At most kRidgeRows rows
// are used; a share s of all rows is fitted with λ/s, because the penalty that does not depend on the rows is λn.
constexpr int64_t kRidgeRows = 10000;
double choose_ridge(const at::Tensor& train, const std::vector<int64_t>& labels, int64_t classes,
                    const ProbeOptions& options);

struct Labeled {
  at::Tensor features;  // (n, F)
  at::Tensor labels;    // (n) int64
};
// The rows with a label; throws Error (data) for a label outside [0, classes).
Labeled known_rows(const at::Tensor& features, const std::vector<int64_t>& labels, int64_t classes, const char* what);

}  // namespace pal::eval
