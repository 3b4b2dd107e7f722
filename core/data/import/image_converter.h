// image_converter: turns one image file into the bytes of a sample: copies it, converts it, or leaves it out with a
// reason.
//
// The first bytes of a file decide its format, never its name. JPEG files are copied unchanged, unless they must be
// decoded: a smaller size or raw pixels are requested, they are CMYK, or their Exif orientation is not upright (they
// are rotated). PNG files become JPEG (or raw pixels). Anything else is left out with a reason.
// Thread: an ImageConverter per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image/jpeg.h"
#include "core/data/image/picture.h"

namespace pal::data {

struct ConvertOptions {
  Encoding encoding = Encoding::jpeg;
  std::vector<int32_t> shape = {0, 0, 0};  // of raw pixels: every image must have it
  int32_t resize_shorter = 0;  // larger images are reduced until their shorter side has this many pixels; 0: not
  int quality = 95;            // of the JPEG files that are made; from 90 on with full chroma
  ImageLimits limits;
};

enum class Treatment { kept, converted, left_out };
const char* treatment_name(Treatment treatment);

struct Oddity {
  Treatment treatment = Treatment::kept;
  std::string what;  // "cut JPEG file: it ends at byte 812…"; the text before the colon is its kind
  std::string kind() const { return what.substr(0, what.find(':')); }
};

struct ConvertedImage {
  std::vector<uint8_t> bytes;  // empty: left out
  std::vector<Oddity> oddities;
  uint32_t crc = 0;  // of the bytes; the caller fills it in
};

class ImageConverter {
 public:
  explicit ImageConverter(const ConvertOptions& options) : options_(options), decoder_(options.limits) {}
  // `name` is only compared with the content. Never throws for what a file holds.
  ConvertedImage take(std::vector<uint8_t> file, std::string_view name);

 private:
  void convert_jpeg(std::vector<uint8_t> file, ConvertedImage& out);
  void convert_png(const std::vector<uint8_t>& file, ConvertedImage& out);
  void store(Picture picture, int orientation, ConvertedImage& out);

  const ConvertOptions options_;
  JpegDecoder decoder_;
};

// "JPEG", "PNG", "GIF", … by the first bytes; "" when they are of no format known here.
std::string image_format(const uint8_t* data, size_t bytes);
// Whether a file's name looks like an image's, of whatever format.
bool has_image_name(std::string_view name);

}  // namespace pal::data
