// jpeg: decodes JPEG files to RGB bytes, whole or a part, in full size or scaled; and encodes them.
//
// jpeg_header.h checks every file first. Gray is repeated to three channels, CMYK and YCCK become RGB
// (Adobe's values are inverted, as all programs write them). The orientation of Exif is not applied.
// Thread: a decoder per thread; it keeps libjpeg's tables and memory from one image to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/image/jpeg_header.h"

namespace pal::data {

// Pixels of a picture; in a scaled decode, of the scaled one.
struct JpegBox {
  int32_t top = 0, left = 0;
  int32_t height = 0, width = 0;  // 0: to the end
};

struct JpegPart {
  int eighths =
      8;        // the picture is decoded at eighths/8 of its size, 1 to 8: the inverse DCT does it, which saves time
  JpegBox box;  // what is wanted of the scaled picture: rows above and below, blocks left and right are skipped
};

struct DecodedJpeg {
  JpegBox box;                    // what rgb holds: the box asked for and, left and right, what the blocks add
  int32_t height = 0, width = 0;  // of the whole scaled picture
  std::string warning;            // libjpeg's first complaint about the coded data; empty: none
};

// The length of a side at eighths/8.
constexpr int32_t scaled_side(int32_t side, int eighths) {
  return static_cast<int32_t>((int64_t{side} * eighths + 7) / 8);
}

class JpegDecoder {
 public:
  explicit JpegDecoder(const ImageLimits& limits = {});
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;

  // rgb becomes (box.height, box.width, 3). Its pixels are those of a whole decode at the same scale. Throws Error
  // (data) whose sentence is the reason; damage that libjpeg can pass over is a warning.
  DecodedJpeg decode(const uint8_t* data, size_t bytes, const JpegPart& part, std::vector<uint8_t>& rgb);
  DecodedJpeg decode(const std::vector<uint8_t>& file, std::vector<uint8_t>& rgb) {
    return decode(file.data(), file.size(), {}, rgb);
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class Chroma { full, halved };  // 4:4:4, 4:2:0

// pixels: (height, width, channels), 1 or 3 channels. The same pixels make the same bytes.
std::vector<uint8_t> encode_jpeg(const uint8_t* pixels, int32_t height, int32_t width, int channels, int quality,
                                 Chroma chroma);

}  // namespace pal::data
