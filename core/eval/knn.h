// knn: weighted nearest neighbors on frozen features: cosine similarity s, votes e^{s/τ}. Ties by the smaller class.
#pragma once

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"
#include "core/eval/linear_probe.h"

namespace pal::eval {

struct KnnOptions {
  int64_t k = 20;
  double temperature = 0.07;
};

Accuracy knn(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
             const std::vector<int64_t>& test_labels, int64_t classes, const KnnOptions& options);
// Collective. One accuracy for each of `options`: the neighbors are looked up once, for the largest k. Each rank takes its
// slice of the test samples; the result is the same on every rank, and for any number of ranks.
std::vector<Accuracy> knn_sweep(const at::Tensor& train, const std::vector<int64_t>& train_labels,
                                const at::Tensor& test, const std::vector<int64_t>& test_labels, int64_t classes,
                                const std::vector<KnnOptions>& options, comm::Comm& comm);

// The k rows of `support` nearest to each query by cosine, best first, equal ones by the lower row. k may not exceed the
// rows. Up to 64 it takes no memory for the pairs (kernels/nearest.h), beyond that a matrix of queries × support.
// Places without a neighbor (rows that are not finite) have index −1 up to 64.
struct Neighbors {
  at::Tensor similarity;  // (Q, k) fp64
  at::Tensor index;       // (Q, k) int64
};
Neighbors neighbors(const at::Tensor& queries, const at::Tensor& support, int64_t k);

}  // namespace pal::eval
