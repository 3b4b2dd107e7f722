// jpeg_files: JPEG files that tests make: smooth pictures with noise, by libjpeg itself in any of its forms.
#pragma once

#include <jpeglib.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/base/philox.h"

namespace pal::data {

inline std::vector<uint8_t> test_picture(int32_t height, int32_t width, int channels, uint64_t seed) {
  Random random(seed, Purpose::noise);
  std::vector<uint8_t> pixels(size_t(height) * size_t(width) * size_t(channels));
  const double fx = 0.02 + 0.1 * random.next_double(), fy = 0.02 + 0.1 * random.next_double();
  for (size_t i = 0; i < pixels.size(); ++i) {
    const auto c = static_cast<double>(i % size_t(channels)),
               x = static_cast<double>(i / size_t(channels) % size_t(width)),
               y = static_cast<double>(i / size_t(channels) / size_t(width));
    const double value = 128 + 60 * std::sin(fx * x + c) + 50 * std::cos(fy * y + 2 * c) + 15 * random.next_double();
    pixels[i] = static_cast<uint8_t>(value);
  }
  return pixels;
}

struct JpegForm {
  J_COLOR_SPACE pixels = JCS_RGB;  // channels: 3, 1 for JCS_GRAYSCALE, 4 for JCS_CMYK
  bool progressive = false;
  int h = 2, v = 2;    // sampling of luma
  bool adobe = false;  // CMYK with the marker, as Photoshop writes
  int restart = 0;
  std::string exif;        // content of an APP1 segment
  bool plain_rgb = false;  // RGB is coded as it is, not as Y, Cb, Cr
};

inline std::vector<uint8_t> test_jpeg(const std::vector<uint8_t>& pixels, int32_t height, int32_t width,
                                      const JpegForm& form = {}) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&codec, &buffer, &bytes);
  codec.image_height = static_cast<JDIMENSION>(height);
  codec.image_width = static_cast<JDIMENSION>(width);
  codec.in_color_space = form.pixels;
  codec.input_components = form.pixels == JCS_GRAYSCALE ? 1 : form.pixels == JCS_CMYK ? 4 : 3;
  jpeg_set_defaults(&codec);
  if (form.plain_rgb) jpeg_set_colorspace(&codec, JCS_RGB);
  jpeg_set_quality(&codec, 92, TRUE);
  codec.comp_info[0].h_samp_factor = form.h;
  codec.comp_info[0].v_samp_factor = form.v;
  codec.restart_interval = static_cast<unsigned>(form.restart);
  codec.write_Adobe_marker = form.adobe || form.plain_rgb;
  if (form.progressive) jpeg_simple_progression(&codec);
  jpeg_start_compress(&codec, TRUE);
  if (!form.exif.empty()) {
    jpeg_write_marker(&codec, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(form.exif.data()),
                      static_cast<unsigned>(form.exif.size()));
  }
  while (codec.next_scanline < codec.image_height) {
    auto* line = const_cast<uint8_t*>(pixels.data()) +
                 size_t(codec.next_scanline) * size_t(width) * size_t(codec.input_components);
    jpeg_write_scanlines(&codec, &line, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  std::vector<uint8_t> file(buffer, buffer + bytes);
  std::free(buffer);
  return file;
}

// Exif with nothing but an orientation.
inline std::string exif_orientation(int value, bool little) {
  const auto number = [&](int v, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(v >> 8 * (little ? i : bytes - 1 - i));
    return text;
  };
  return std::string("Exif\0\0", 6) + (little ? "II" : "MM") + number(42, 2) + number(8, 4) + number(1, 2) +
         number(0x0112, 2) + number(3, 2) + number(1, 4) + number(value, 2) + number(0, 2) + number(0, 4);
}

}  // namespace pal::data
