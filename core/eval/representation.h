// representation: figures on a set of features: rank, uniformity, alignment; and a map of them in the plane.
//
// Math:   uniformity = log mean_{i≠j} e^{−2‖z_i − z_j‖²}, alignment = mean ‖z_i − z_i'‖² between two views of a sample, both
//         of unit rows; 0 is collapse for the first, −4 near the whole sphere; 0 is perfect for the second.
// Reference: Wang and Isola, "Understanding contrastive representation learning" (2020).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/comm.h"
#include "core/data/dataset.h"
#include "core/data/loader/renderer.h"
#include "core/eval/embed.h"

namespace pal::eval {

// Directions that the features really use: the participation ratio (Σλ)² / Σλ² of their covariance's eigenvalues, in [1, D];
// 0 for fewer than two rows, or equal ones. (Of the rows of a batch on several ranks: effective_rank.h.)
double feature_rank(const at::Tensor& features);
// Of at most `rows` rows, spread evenly.
double uniformity(const at::Tensor& features, int64_t rows = 4096);
double alignment(const at::Tensor& one, const at::Tensor& other);

// Collective. Features of two augmented views of each sample, in evaluation mode: the first two policies of `views`.
struct TwoViews {
  at::Tensor one, other;  // (samples.size(), F), on every rank
};
TwoViews embed_two_views(model::Encoder& encoder, std::shared_ptr<const data::Dataset> data,
                         const std::vector<int64_t>& samples, const data::ViewSet& views, const EmbedOptions& options,
                         comm::Comm& comm);

// The two directions of most variance: (n, 2) coordinates, and the share of the variance that each holds. The sign is
// fixed: the largest entry of a direction is positive.
struct PlaneMap {
  at::Tensor points;  // (n, 2) fp64
  double share[2] = {0, 0};
};
PlaneMap principal_plane(const at::Tensor& features);

}  // namespace pal::eval
