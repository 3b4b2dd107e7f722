// augment: kernels/augment.h on tensors, by device: augmented views of decoded images in one tensor of bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/augment_params.h"

namespace pal::ops {

// A part whose pixels begin at byte `place` of a tensor; its own pointer is not used.
struct PlacedPart {
  kernels::ImagePart part;
  int64_t place = 0;
};

// out (V · R, C, size, size), view-major: view v of part r with params[v · R + r]. pixels: bytes, on out's device.
void augment_parts(const at::Tensor& out, const at::Tensor& pixels, const std::vector<PlacedPart>& parts,
                   const std::vector<kernels::ViewParams>& params, const kernels::AugmentOptions& options, int threads);

}  // namespace pal::ops
