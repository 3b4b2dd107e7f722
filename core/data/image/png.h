// png: PNG files to bytes of gray or RGB, and back.
//
// Palettes, 1 to 16 bits, transparency and interlacing are read. 16 bits are rounded to 8; transparent pixels are
// blended with white, as a viewer shows them.
// Thread: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/image/jpeg_header.h"

namespace pal::data {

struct PngHeader {
  int32_t width = 0, height = 0;
  int32_t channels = 0;      // as it is decoded: 1 or 3
  int bits = 8;              // of a channel in the file
  bool transparent = false;  // has an alpha channel; a palette may hold more
};

bool is_png(const uint8_t* data, size_t bytes);
// Both throw Error (data) with the reason, without the file's name.
PngHeader inspect_png(const uint8_t* data, size_t bytes, const ImageLimits& limits = {});
// pixels becomes (height, width, channels).
PngHeader decode_png(const uint8_t* data, size_t bytes, std::vector<uint8_t>& pixels, const ImageLimits& limits = {});

std::vector<uint8_t> encode_png(const uint8_t* pixels, int32_t height, int32_t width, int channels);

}  // namespace pal::data
