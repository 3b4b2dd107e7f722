// flat: tensors as views of flat buffers, so that many of them are reduced, checked, updated or copied in one pass.
//
// Each view keeps the memory layout of its tensor (such as channels-last) and is aligned to 64 bytes; gaps are 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/ops/named_tensors.h"

namespace pal::optim {

// A buffer of zeros with a view for each tensor, of its shape and layout. All tensors have one type.
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

// Moves the parameters into gradient buckets of at most `bucket_bytes`, in the order of backward: the last parameter
// first. A larger parameter gets a bucket of its own. A bucket takes at most half of the remaining bytes, down to 1 MB:
// so the last all-reduce, which nothing overlaps, is small. Parameters keep their identity (the same at::Tensor).
// Gradients are not attached.
std::vector<FlatBucket> flatten(const ops::NamedTensors& parameters, int64_t bucket_bytes);

}  // namespace pal::optim
