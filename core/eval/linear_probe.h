// linear_probe: how well a linear classifier reads the classes off frozen features.
//
// Math:   features standardised by the training set's mean and deviation; softmax regression with ridge λ‖W‖²/2,
//         minimised by L-BFGS on the whole training set (convex: the answer depends on no seed and no learning rate).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pal {

struct ProbeOptions {
  double ridge = 1e-4;
  int iterations = 100;
};

struct Accuracy {
  double top1 = 0;          // share of the test samples
  int64_t train = 0, test = 0;
};

// (n, F) features and labels (n), −1 left out. Deterministic.
Accuracy linear_probe(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
                      const std::vector<int64_t>& test_labels, int64_t classes, const ProbeOptions& options);

struct Labelled {
  at::Tensor features;   // (n, F)
  at::Tensor labels;     // (n) int64
};
// The rows whose label is known; a label outside [0, classes) is an Error (data).
Labelled known_rows(const at::Tensor& features, const std::vector<int64_t>& labels, int64_t classes, const char* what);

}  // namespace pal
