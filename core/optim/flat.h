// flat: tensors as views of flat buffers, so that many of them are reduced, checked, updated or copied in one pass.
//
// Each view has its tensor's own memory layout (channels-last stays) and begins at a multiple of 64 bytes; gaps are 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/ops/named_tensors.h"

namespace pal::optim {

// One buffer of zeros with a view for each tensor, of its shape and layout. All tensors have one type.
struct FlatViews {
  at::Tensor flat;  // (n)
  std::vector<at::Tensor> views;
};
FlatViews flat_zeros(const std::vector<at::Tensor>& like);

// Parameters that are reduced together.
struct FlatBucket {
  std::vector<at::Tensor> parameters;
  FlatViews values, gradients;
};

// Moves the parameters into buckets of at most `bucket_bytes` (a larger one gets a bucket of its own), the last parameter
// first, as backward reaches them. A bucket takes at most half of what is left, down to 1 MB: the last one to fill, whose
// sum nothing hides, is small. Whoever holds a parameter sees the same tensor as before. Gradients are not attached.
std::vector<FlatBucket> flatten(const ops::NamedTensors& parameters, int64_t bucket_bytes);

}  // namespace pal::optim
