// memory_dataset: a data set of random images held in memory, with switches for failures.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "core/data/dataset.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::data {

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(int64_t size, int32_t height, int32_t width, int32_t channels)
      : size_(size), shape_{height, width, channels}, labels_(size) {
    for (int64_t i = 0; i < size; ++i) labels_[i] = i % 3;
  }

  int64_t size() const override { return size_; }
  Encoding encoding() const override { return stored_as; }
  std::vector<int32_t> shape() const override { return shape_; }
  const std::vector<int64_t>& labels() const override { return labels_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t fingerprint() const override { return 1; }

  void read(int64_t sample, std::vector<uint8_t>& bytes) const override {
    ++reads;
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    PAL_DATA_CHECK(sample != broken, "CRC of sample", sample, "import it again");
    bytes.resize(int64_t{shape_[0]} * shape_[1] * shape_[2]);
    Random random(77, Purpose::bench, 0, static_cast<uint64_t>(sample));
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next_u32());
  }
  kernels::ImageView image(int64_t, const std::vector<uint8_t>& bytes) const override {
    return {bytes.data(), shape_[0], shape_[1], shape_[2]};
  }

  Encoding stored_as = Encoding::raw;
  int64_t broken = -1;                 // reading it throws
  std::chrono::milliseconds delay{0};  // of every read
  mutable std::atomic<int64_t> reads{0};

 private:
  int64_t size_;
  std::vector<int32_t> shape_;
  std::vector<int64_t> labels_;
  std::vector<std::string> classes_ = {"a", "b", "c"};
};

}  // namespace pal::data
