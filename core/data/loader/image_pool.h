// image_pool: the memory that steps are rendered into, and used again when nobody holds it any more.
//
// Pages that are given back and asked for again cost as much as a resize: so a buffer has room for the largest step and
// stays. A step that is still held (by the trainer, by autograd) is left alone, and another buffer takes its place.
// Thread: take() may be called from any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/augment.h"

namespace pal::data {

// Room for `rows` images of these options, not filled. dtype is float32 or float64.
at::Tensor empty_images(int64_t rows, const kernels::AugmentOptions& options, at::ScalarType dtype,
                        at::Device device = at::kCPU);

int64_t images_bytes(int64_t rows, const kernels::AugmentOptions& options, at::ScalarType dtype);

class ImagePool {
 public:
  // At most `keep` buffers are kept, each with room for max_rows images.
  ImagePool(size_t keep, int64_t max_rows, const kernels::AugmentOptions& options, at::ScalarType dtype)
      : keep_(keep), max_rows_(max_rows), options_(options), dtype_(dtype) {}

  at::Tensor take(int64_t rows);

 private:
  const size_t keep_;
  const int64_t max_rows_;
  const kernels::AugmentOptions options_;
  const at::ScalarType dtype_;
  std::mutex mutex_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace pal::data
