// knn: weighted nearest neighbours on frozen features: cosine similarity s, votes e^{s/τ}. Ties by the smaller class.
#pragma once

#include "core/eval/linear_probe.h"

namespace pal {

struct KnnOptions {
  int64_t k = 20;
  double temperature = 0.07;
};

Accuracy knn(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
             const std::vector<int64_t>& test_labels, int64_t classes, const KnnOptions& options);

}  // namespace pal
