// picture: an image in memory: rotates it upright and makes it smaller.
#pragma once

#include <cstdint>
#include <vector>

namespace pal::data {

struct Picture {
  int32_t height = 0, width = 0;
  int channels = 3;             // 1 or 3
  std::vector<uint8_t> pixels;  // (height, width, channels)
};

// Applies an Exif orientation, 1 to 8.
Picture turn_upright(const Picture& picture, int orientation);

// By the triangle filter with antialiasing, as Pillow's bilinear; within 1/255 of it.
Picture resize_picture(const Picture& picture, int32_t height, int32_t width);

// The size at which the shorter side has `shorter` pixels and the longer one keeps the ratio, rounded to nearest.
void shorter_side_size(int32_t height, int32_t width, int32_t shorter, int32_t* new_height, int32_t* new_width);

}  // namespace pal::data
