// knn: weighted k-nearest-neighbor classification on frozen features.
//
// Math: cosine similarity s, votes e^{s/τ}; ties go to the smaller class.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/comm/comm.h"
#include "core/eval/linear_probe.h"

namespace pal::eval {

struct KnnOptions {
  int64_t k = 20;
  double temperature = 0.07;
};
using RowProgress = std::function<void(int64_t rows)>;  // of the test set, done by this rank

Accuracy knn(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
             const std::vector<int64_t>& test_labels, int64_t classes, const KnnOptions& options);
// Collective. One accuracy for each of `options`; neighbors are searched once, for the largest k. Each rank classifies
// its slice of the test samples. The result is the same on every rank and for any number of ranks.
std::vector<Accuracy> knn_sweep(const at::Tensor& train, const std::vector<int64_t>& train_labels,
                                const at::Tensor& test, const std::vector<int64_t>& test_labels, int64_t classes,
                                const std::vector<KnnOptions>& options, comm::Comm& comm,
                                const RowProgress& progress = {});

// The k rows of `support` nearest to each query by cosine, best first, ties by the lower row. k is at most the number
// of rows. For k ≤ 64 no matrix of pairs is stored (kernels/nearest.h); a larger k takes one of queries × support.
// For k ≤ 64 missing neighbors (rows that are not finite) have index −1.
struct Neighbors {
  at::Tensor similarity;  // (Q, k) fp64
  at::Tensor index;       // (Q, k) int64
};
Neighbors neighbors(const at::Tensor& queries, const at::Tensor& support, int64_t k);

}  // namespace pal::eval
