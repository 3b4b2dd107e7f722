// device_decode: images that a DeviceDecoder has begun, finished into one tensor of bytes, on its device's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/image/device_decoder.h"

namespace pal::data {

struct StartedPart {
  std::unique_ptr<DeviceDecoder::Image> image;
  int64_t place = 0;  // of its first byte
};

void finish_parts(const at::Tensor& pixels, std::vector<StartedPart> parts, DeviceDecoder& decoder);

}  // namespace pal::data
