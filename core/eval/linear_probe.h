// linear_probe: how well a linear classifier reads the classes off frozen features.
//
// Math:   features standardized by the training set's mean and deviation, then either
//         lbfgs: softmax regression with ridge λ‖W‖²/2, minimized on the whole training set (convex: the answer depends on
//                no seed and no learning rate), or
//         ridge: least squares on ±one-hot targets, W = (XᵀX/n + λI)⁻¹ XᵀY/n in one factorization: the fast one.
//         The field's recipe, SGD on augmented views, is finetune.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/eval/scores.h"

namespace pal::eval {

enum class ProbeMethod { lbfgs, ridge };
struct ProbeOptions {
  double ridge = 1e-4;
  int iterations = 100;
  ProbeMethod method = ProbeMethod::lbfgs;
};

// (n, F) features and labels (n), −1 left out. Deterministic.
Accuracy linear_probe(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
                      const std::vector<int64_t>& test_labels, int64_t classes, const ProbeOptions& options);

struct Labeled {
  at::Tensor features;  // (n, F)
  at::Tensor labels;    // (n) int64
};
// The rows whose label is known; a label outside [0, classes) is an Error (data).
Labeled known_rows(const at::Tensor& features, const std::vector<int64_t>& labels, int64_t classes, const char* what);

}  // namespace pal::eval
