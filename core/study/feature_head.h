// feature_head: a linear representation of given features, learned from the graph in closed form: what a small head on
// frozen features learns from the answers so far.
//
// Math:   x centered rows, Σ = XᵀX/n, u = (Σ + λI)^-½ x (λ = ridge · mean eigenvalue). Z = U W, W the K largest
//           eigenvectors of (1 − α) U-space of Σ  +  α Σ_{i≠j} G_ij u_i u_jᵀ / Σ_{i≠j} G_ij
//         G: the pairs known to be alike, self-loops off, each group c weighted by its size (G_ij = 1 / (|c| − 1)): it
//         attracts them; the whitening is what keeps Z from collapsing. α = m / (m + prior · D), m the samples with a
//         known partner: with nothing known these are the principal components, the SSL solution for views that differ
//         by white noise; with all labels it is the linear discriminant. c: a group that is taken for alike
//         (core/graph/similarity_groups.h); with Deduction::off also every pair answered to be the same.
//         Everything that depends on the samples is a D × D sum in the axes of Σ: a fit with other λ and prior is small
//         algebra.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/eval/linear_probe.h"
#include "core/graph/store.h"

namespace pal::study {

struct HeadOptions {
  double ridge = 0.1;
  double prior = 4;
};
// What choose_head() chooses from.
std::vector<HeadOptions> head_candidates();

class FeatureHead {
 public:
  // rows (n, D) float: the training set, sample by sample.
  FeatureHead(const at::Tensor& rows, int64_t width);

  void see(const graph::GraphStore& store);             // the graph to fit
  void fit(const HeadOptions& options);                 // to the graph of see()
  at::Tensor operator()(const at::Tensor& rows) const;  // (n, width) float

 private:
  int64_t width_;
  at::Tensor mean_, axes_, values_;  // (D), (D, D), (D) double: of Σ, the largest first
  at::Tensor x_;                     // (n, D) the training set along the axes
  at::Tensor graph_;                 // (D, D) double Σ G_ij x_i x_jᵀ, and Σ G_ij
  double samples_ = 0;
  at::Tensor weight_;  // (D, width) float: from centered rows
};

// Fits the head with the candidate whose representation a linear probe of the training part reads best in the
// validation part (accuracy, ties by the order of the candidates), and returns it. Both are rows of the training set
// with labels; the test set is not used.
struct HeadSplit {
  at::Tensor train, validation;  // (n, D) float
  std::vector<int64_t> train_labels, validation_labels;
  int64_t classes = 0;
};
HeadOptions choose_head(FeatureHead& head, const HeadSplit& split, const eval::ProbeOptions& probe);

// The first `width` principal components of the rows of a training set, to be applied to others.
struct Components {
  at::Tensor mean, axes;  // (D), (D, width)
  at::Tensor operator()(const at::Tensor& rows) const;
};
Components principal_components(const at::Tensor& rows, int64_t width);

}  // namespace pal::study
