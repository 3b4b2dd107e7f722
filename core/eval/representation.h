// representation: statistics of a set of features (rank, uniformity, alignment) and their projection to the plane.
//
// Math:   uniformity = log mean_{i≠j} e^{−2‖z_i − z_j‖²}, alignment = mean ‖z_i − z_i'‖² between two views of a sample,
//         both of unit rows. Uniformity is 0 at collapse and near −4 on the whole sphere; alignment 0 is perfect.
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

// The participation ratio (Σλ)² / Σλ² of the eigenvalues of the covariance, in [1, D]; 0 for fewer than two rows or
// equal rows. For a batch on several ranks see diagnostics.h.
double feature_rank(const at::Tensor& features);
// Uses at most `rows` rows, evenly spaced.
double uniformity(const at::Tensor& features, int64_t rows = 4096);
double alignment(const at::Tensor& one, const at::Tensor& other);

// Collective. Features of two augmented views of each sample (the first two policies of `views`), in evaluation mode,
// by the encoder's device.
struct TwoViews {
  at::Tensor one, other;  // (samples.size(), F), in host memory of every rank
};
TwoViews embed_two_views(model::Encoder& encoder, std::shared_ptr<const data::Dataset> data,
                         const std::vector<int64_t>& samples, const data::ViewSet& views, const EmbedOptions& options,
                         comm::Comm& comm);

// The first two principal components: (n, 2) coordinates, and the share of variance of each. The sign is fixed: the
// largest entry of a direction is positive.
struct PlaneMap {
  at::Tensor points;  // (n, 2) fp64
  double share[2] = {0, 0};
};
PlaneMap principal_plane(const at::Tensor& features);

}  // namespace pal::eval
