#include "core/data/loader/image_pool.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "kernels/base/error.h"

namespace pal::data {

at::Tensor empty_images(int64_t rows, const kernels::AugmentOptions& options, at::ScalarType dtype, at::Device device) {
  PAL_CHECK(dtype == at::kFloat || dtype == at::kDouble, "the type of the images is {}", c10::toString(dtype),
            "use float32 or float64");
  const auto format =
      options.layout == kernels::Layout::channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return at::empty({rows, options.channels, options.size, options.size},
                   at::TensorOptions(dtype).memory_format(format).device(device));
}

int64_t images_bytes(int64_t rows, const kernels::AugmentOptions& options, at::ScalarType dtype) {
  return rows * options.channels * options.size * options.size * static_cast<int64_t>(c10::elementSize(dtype));
}

at::Tensor ImagePool::take(int64_t rows) {
  PAL_ASSERT(rows <= max_rows_,
             "a step of " + std::to_string(rows) + " images in a buffer of " + std::to_string(max_rows_));
  const std::lock_guard lock(mutex_);
  const auto held = [](const at::Tensor& t) { return t.storage().use_count() > 1; };
  auto buffer = std::find_if_not(buffers_.begin(), buffers_.end(), held);
  if (buffer == buffers_.end()) {
    if (buffers_.size() == keep_) buffers_.erase(buffers_.begin());  // only the tensors that refer to it keep it alive
    buffer = buffers_.insert(buffers_.end(), empty_images(max_rows_, options_, dtype_));
  }
  return buffer->narrow(0, 0, rows);
}

}  // namespace pal::data
