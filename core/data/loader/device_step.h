// device_step: a step whose views the device makes: the decoded parts of its samples and the parameters of each view.
//
// Loader threads append parts to one buffer in any order; a part that does not fit is kept in a vector of its own. One
// copy moves the buffer to the device, where core/ops/augment.h makes all views on the current stream. Images that a
// DeviceDecoder has begun are finished there first, into the same memory. For a GPU the buffer comes from LibTorch's
// pool of pinned memory, which reuses it only after the copy has completed.
// Thread: put() from any thread, for different rows; the other functions from one thread, after all rows were put.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/image/device_decoder.h"
#include "core/ops/augment.h"

namespace pal::data {

class DeviceStep {
 public:
  // `bytes`: capacity for all parts.
  DeviceStep(int64_t rows, int64_t views, int64_t bytes, at::Device device);
  // An image that was begun has no pixels yet.
  void put(int64_t row, const kernels::ImagePart& part, const std::vector<kernels::ViewParams>& params,
           std::unique_ptr<DeviceDecoder::Image> begun = nullptr);

  at::Tensor to_device(DeviceDecoder* decoder = nullptr);  // all pixels; call it once
  // The views [first, first + count) of all rows, view-major, of the pixels on the device.
  at::Tensor views(const at::Tensor& pixels, int64_t first, int64_t count, const kernels::AugmentOptions& options,
                   at::ScalarType dtype, int threads) const;

 private:
  const int64_t rows_;
  const at::Device device_;
  at::Tensor buffer_;                                         // (bytes)
  std::atomic<int64_t> used_ = 0;                             // bytes requested so far; may exceed the capacity
  std::vector<ops::PlacedPart> parts_;                        // (rows)
  std::vector<std::vector<uint8_t>> beside_;                  // (rows) parts that did not fit into buffer_
  std::vector<std::unique_ptr<DeviceDecoder::Image>> begun_;  // (rows)
  std::vector<kernels::ViewParams> params_;                   // (views, rows)
};

}  // namespace pal::data
