// feature_head: a linear representation of given features, learned from the graph in closed form: what a small head on frozen
// features can make of the answers so far.
//
// Math:   x centred rows, Σ = XᵀX/n, u = (Σ + λI)^-½ x (λ = ridge · mean eigenvalue). Z = U W, W the K largest eigenvectors of
//           (1 − α) U-space of Σ  +  α Σ_{i≠j} G_ij u_i u_jᵀ / Σ_{i≠j} G_ij
//         G: the pairs known to be alike, self-loops off, each component weighted by its size (G_ij = 1 / (|c| − 1)): it attracts
//         them; the whitening is what keeps Z from collapsing. α = m / (m + 4 D), m the samples with a known partner: with
//         nothing known these are the principal components, the SSL solution for views that differ by white noise; with all
//         labels it is the linear discriminant. With Deduction::off G has the answered pairs alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/graph/store.h"

namespace pal {

class FeatureHead {
 public:
  // rows (n, D) float: the training set, sample by sample.
  FeatureHead(const at::Tensor& rows, int64_t width, double ridge = 0.1);

  void fit(const GraphStore& store);
  at::Tensor operator()(const at::Tensor& rows) const;   // (n, width) float

 private:
  int64_t width_;
  at::Tensor mean_, whiten_, base_;   // (D), (D, D), (D): the eigenvalues of the first term
  at::Tensor u_;                      // (n, D) the training set, whitened
  at::Tensor weight_;                 // (D, width)
};

// The first `width` principal components of the rows of a training set, to be applied to others.
struct Components {
  at::Tensor mean, axes;              // (D), (D, width)
  at::Tensor operator()(const at::Tensor& rows) const;
};
Components principal_components(const at::Tensor& rows, int64_t width);

}  // namespace pal
