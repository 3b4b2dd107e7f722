// jpeg_dataset: JPEG images of many sizes and forms held in memory, with the pixels that a whole decode gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image/jpeg.h"
#include "tests/core/data/image/jpeg_files.h"

namespace pal::data {

class JpegDataset final : public Dataset {
 public:
  // Sides from `smallest` to `largest`; baseline and progressive, 4:2:0, 4:2:2 and 4:4:4, every eighth gray.
  JpegDataset(int64_t size, int32_t smallest, int32_t largest, uint64_t seed) {
    Random random(seed, Purpose::bench);
    const auto side = [&] {
      return smallest + static_cast<int32_t>(random.below(static_cast<uint64_t>(largest - smallest + 1)));
    };
    for (int64_t i = 0; i < size; ++i) {
      JpegForm form;
      if (i % 8 == 7) form.pixels = JCS_GRAYSCALE;
      form.progressive = i % 5 == 4;
      form.h = i % 3 == 2 ? 1 : 2;
      form.v = i % 3 == 0 ? 2 : 1;
      const int32_t height = side(), width = side();
      files_.push_back(
          test_jpeg(test_picture(height, width, form.pixels == JCS_GRAYSCALE ? 1 : 3, seed + static_cast<uint64_t>(i)),
                    height, width, form));
      const DecodedJpeg whole = decoder_.decode(files_.back(), pixels_.emplace_back());
      images_.push_back({nullptr, whole.height, whole.width, 3});
    }
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Encoding encoding() const override { return Encoding::jpeg; }
  std::vector<int32_t> shape() const override { return {0, 0, 3}; }
  const std::vector<int64_t>& labels() const override { return none_; }
  const std::vector<std::string>& classes() const override { return no_names_; }
  uint64_t fingerprint() const override { return 2; }
  std::string where(int64_t sample) const override { return "memory.h5: sample " + std::to_string(sample); }
  void read(int64_t sample, std::vector<uint8_t>& bytes) const override { bytes = files_[static_cast<size_t>(sample)]; }
  // All pixels of a sample; the bytes do not matter.
  kernels::ImageView image(int64_t sample, const std::vector<uint8_t>&) const override {
    kernels::ImageView image = images_[static_cast<size_t>(sample)];
    image.data = pixels_[static_cast<size_t>(sample)].data();
    return image;
  }

  std::vector<uint8_t>& file(int64_t sample) { return files_[static_cast<size_t>(sample)]; }

 private:
  JpegDecoder decoder_;
  std::vector<std::vector<uint8_t>> files_, pixels_;
  std::vector<kernels::ImageView> images_;
  std::vector<int64_t> none_;
  std::vector<std::string> no_names_;
};

}  // namespace pal::data
