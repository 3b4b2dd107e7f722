#include "core/data/image/jpeg_header.h"

#include <cstring>
#include <string>

#include "kernels/base/error.h"

namespace pal::data {
namespace {

constexpr const char* kLeaveOut = "leave the image out";

enum Marker : int {
  kRestart0 = 0xD0,
  kRestart7 = 0xD7,
  kStart = 0xD8,
  kEnd = 0xD9,
  kScan = 0xDA,
  kApp1 = 0xE1,
  kApp14 = 0xEE,
  kTemporary = 0x01
};

class JpegWalker {
 public:
  JpegWalker(const uint8_t* data, size_t bytes, const ImageLimits& limits)
      : data_(data), bytes_(bytes), limits_(limits) {}

  JpegHeader walk(JpegWalk extent) {
    PAL_DATA_CHECK(bytes_ >= 3 && data_[0] == 0xFF && data_[1] == kStart && data_[2] == 0xFF, "not a JPEG file",
                   "it has no JPEG signature", kLeaveOut);
    at_ = 2;
    for (;;) {
      const int marker = next_marker();
      if (marker == kEnd) break;
      if (marker == kTemporary || (marker >= kRestart0 && marker <= kRestart7)) continue;
      PAL_DATA_CHECK(marker != kStart, "damaged JPEG file", "a second start marker", kLeaveOut);
      const size_t end = segment_end();
      if (is_frame(marker)) read_frame(marker, end);
      if (marker == kApp1) read_exif(at_ + 2, end);
      if (marker == kApp14) read_adobe(at_ + 2, end);
      at_ = end;
      if (marker != kScan) continue;
      PAL_DATA_CHECK(header_.width > 0, "damaged JPEG file", "a scan before the frame", kLeaveOut);
      PAL_DATA_CHECK(++header_.scans <= limits_.max_scans, "JPEG file with too many scans", header_.scans,
                     "at most " + std::to_string(limits_.max_scans) + " are read");
      header_.ycc = numbered_ && !other_colors_;
      if (extent == JpegWalk::to_first_scan) return header_;
      skip_coded_data();
    }
    PAL_DATA_CHECK(header_.scans > 0, "JPEG file without an image", "it ends before the first scan", kLeaveOut);
    header_.end = at_;
    return header_;
  }

 private:
  [[noreturn]] void fail_cut() const {
    throw Error(Exit::data, "cut JPEG file: it ends at byte " + std::to_string(bytes_) +
                                " without an end marker; copy it again from its source");
  }
  int byte(size_t at) const { return data_[at]; }
  int word(size_t at) const { return data_[at] << 8 | data_[at + 1]; }

  // Moves past the next marker; skips bytes between segments and fill bytes, as decoders do.
  int next_marker() {
    for (;;) {
      const void* found = at_ < bytes_ ? std::memchr(data_ + at_, 0xFF, bytes_ - at_) : nullptr;
      if (!found) fail_cut();
      at_ = static_cast<size_t>(static_cast<const uint8_t*>(found) - data_) + 1;
      if (at_ == bytes_) fail_cut();
      const int marker = byte(at_);
      if (marker == 0x00 || marker == 0xFF) continue;  // a stuffed byte; fill
      ++at_;
      return marker;
    }
  }

  // The end of the segment whose length is stored at at_.
  size_t segment_end() const {
    if (bytes_ - at_ < 2) fail_cut();
    const auto length = static_cast<size_t>(word(at_));
    PAL_DATA_CHECK(length >= 2, "damaged JPEG file: length of a segment", length, kLeaveOut);
    if (bytes_ - at_ < length) fail_cut();
    return at_ + length;
  }

  // To the next marker that is not a restart; 0xFF 0x00 is a byte of the data.
  void skip_coded_data() {
    for (;;) {
      const int marker = next_marker();
      if (marker >= kRestart0 && marker <= kRestart7) continue;
      at_ -= 2;
      return;
    }
  }

  static bool is_frame(int marker) {  // all SOFn; DHT, JPG and DAC have numbers between them
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
  }

  void read_frame(int marker, size_t end) {
    const size_t length = end - at_;
    PAL_DATA_CHECK(marker <= 0xC2, "JPEG file with an unsupported coding",
                   marker >= 0xC9 ? "arithmetic" : "lossless or hierarchical", kLeaveOut);
    PAL_DATA_CHECK(header_.width == 0, "damaged JPEG file", "two frames", kLeaveOut);
    PAL_DATA_CHECK(length >= 8, "damaged JPEG file: length of its frame", length, kLeaveOut);
    PAL_DATA_CHECK(byte(at_ + 2) == 8, "JPEG file with another depth than 8 bits", byte(at_ + 2), kLeaveOut);
    const int height = word(at_ + 3), width = word(at_ + 5), components = byte(at_ + 7);
    check_image_size(height, width, limits_);
    PAL_DATA_CHECK(components == 1 || components == 3 || components == 4,
                   "JPEG file with an impossible number of components", components, kLeaveOut);
    PAL_DATA_CHECK(length == 8 + 3 * static_cast<size_t>(components), "damaged JPEG file: length of its frame", length,
                   kLeaveOut);
    for (int c = 0; c < components; ++c) {
      const int sampling = byte(at_ + 9 + 3 * static_cast<size_t>(c)), h = sampling >> 4, v = sampling & 15;
      PAL_DATA_CHECK(h >= 1 && h <= 4 && v >= 1 && v <= 4, "damaged JPEG file: sampling factors", sampling, kLeaveOut);
    }
    // Each block of 8 × 8 pixels costs at least one bit, so a small file cannot hold a huge picture.
    PAL_DATA_CHECK(int64_t{width} * height <= 512 * static_cast<int64_t>(bytes_),
                   "the header claims a picture that the file cannot hold",
                   std::to_string(width) + " x " + std::to_string(height) + " in " + std::to_string(bytes_) + " bytes",
                   kLeaveOut);
    header_.height = height;
    header_.width = width;
    header_.components = components;
    header_.progressive = marker == 0xC2;
    numbered_ = components == 3 && byte(at_ + 8) == 1 && byte(at_ + 11) == 2 && byte(at_ + 14) == 3;
  }

  // Adobe's marker ends with the transform of colors: 1 is Y, Cb, Cr.
  void read_adobe(size_t begin, size_t end) {
    if (end - begin >= 12 && std::memcmp(data_ + begin, "Adobe", 5) == 0) other_colors_ = byte(begin + 11) != 1;
  }

  // Exif is a small TIFF file: byte order, then a directory of 12-byte entries.
  void read_exif(size_t begin, size_t end) {
    constexpr size_t kName = 6;
    if (end - begin < kName + 8 || std::memcmp(data_ + begin, "Exif\0\0", kName) != 0) return;
    const uint8_t* tiff = data_ + begin + kName;
    const size_t size = end - begin - kName;
    const bool little = tiff[0] == 'I';
    if (!(tiff[0] == tiff[1] && (tiff[0] == 'I' || tiff[0] == 'M'))) return;
    const auto number = [&](size_t at, int bytes) {
      uint32_t value = 0;
      for (int i = 0; i < bytes; ++i)
        value |= uint32_t{tiff[at + static_cast<size_t>(i)]} << 8 * (little ? i : bytes - 1 - i);
      return value;
    };
    const size_t directory = number(4, 4);
    if (directory > size || size - directory < 2) return;
    const size_t entries = number(directory, 2);
    for (size_t k = 0; k < entries && directory + 2 + 12 * (k + 1) <= size; ++k) {
      const size_t entry = directory + 2 + 12 * k;
      if (number(entry, 2) != 0x0112 || number(entry + 2, 2) != 3) continue;  // Orientation, a SHORT
      const uint32_t value = number(entry + 8, 2);
      if (value >= 1 && value <= 8) header_.orientation = static_cast<int>(value);
      return;
    }
  }

  const uint8_t* data_;
  size_t bytes_;
  const ImageLimits& limits_;
  size_t at_ = 0;
  JpegHeader header_;
  bool numbered_ = false, other_colors_ = false;  // components numbered 1, 2, 3; Adobe's marker names other colors
};

}  // namespace

void check_image_size(int64_t height, int64_t width, const ImageLimits& limits) {
  const auto size = [&] { return std::to_string(width) + " x " + std::to_string(height); };
  PAL_DATA_CHECK(height > 0 && width > 0, "image without pixels", size(), kLeaveOut);
  PAL_DATA_CHECK(width <= limits.max_pixels / height, "image with too many pixels", size(),
                 "at most " + std::to_string(limits.max_pixels) + " are read");
}

JpegHeader inspect_jpeg(const uint8_t* data, size_t bytes, JpegWalk walk, const ImageLimits& limits) {
  return JpegWalker(data, bytes, limits).walk(walk);
}

}  // namespace pal::data
