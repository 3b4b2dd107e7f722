// image_pool: the memory that steps are rendered into, reused when no tensor refers to it any more.
//
// Returning pages to the system and requesting them again costs as much as a resize, so each buffer holds the largest
// step and is kept. A buffer that the trainer or autograd still refers to is not touched; another one takes its place.
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
