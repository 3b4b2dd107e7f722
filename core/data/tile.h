// tile: a few samples, read and rendered by one thread; its buffers are used again for the next tile.
//
// Thread: one per thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"

namespace pal {

class Tile {
 public:
  static constexpr int64_t kSamples = 8;  // enough to hide the hand-over, few enough to share a step among threads

  explicit Tile(const Dataset& data) : data_(data) {}

  // Fills rows [begin, begin + count) of every view of images (V · rows, C, size, size) with samples[begin…].
  void augment(at::Tensor& images, const std::vector<int64_t>& samples, int64_t begin, int64_t count,
               const std::vector<kernels::ViewPolicy>& views, kernels::AugmentOptions options);
  // The same with the one view of evaluation.
  void centre(at::Tensor& images, const std::vector<int64_t>& samples, int64_t begin, int64_t count,
              const kernels::AugmentOptions& options);

 private:
  void read(const int64_t* samples, int64_t count, const kernels::AugmentOptions& options);

  const Dataset& data_;
  std::vector<std::vector<uint8_t>> bytes_;
  std::vector<kernels::ImageView> images_;
  std::vector<char> scratch_;
};

// Room for rows images of these options, not filled. dtype is float32 or float64.
at::Tensor empty_images(int64_t rows, const kernels::AugmentOptions& options, at::ScalarType dtype);

// Throws Error (data) when the images of the set cannot be read by Tile.
void check_encoding(const Dataset& data);

}  // namespace pal
