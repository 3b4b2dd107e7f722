#include "core/data/loader/device_step.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/data/loader/image_pool.h"
#include "core/ops/dispatch.h"

namespace pal::data {
namespace {

int64_t bytes_of(const kernels::ImagePart& part) {
  return int64_t{part.pixels.height} * part.pixels.width * part.pixels.channels;
}

constexpr int64_t kAlignment = 256;  // of an image that the device writes

struct StartedPart {
  std::unique_ptr<DeviceDecoder::Image> image;
  int64_t place = 0;  // of its first byte
};

// Pinned for a GPU. The pool asks CUDA whether earlier copies are done, and the calling thread, a loader's, has chosen
// no device: without the guard it would create a context on GPU 0.
at::Tensor pixel_buffer(int64_t bytes, at::Device device) {
  const c10::OptionalDeviceGuard guard(device.is_cuda() ? std::optional(device) : std::nullopt);
  return at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(device.is_cuda()));
}

// Finishes the images that a DeviceDecoder has begun, into `pixels`, on the current stream of its device.
void finish_parts(const at::Tensor& pixels, std::vector<StartedPart> parts, DeviceDecoder& decoder) {
  const auto finish = [&](cudaStream_t stream) {
    for (StartedPart& p : parts)
      decoder.finish(std::move(p.image), pixels.mutable_data_ptr<uint8_t>() + p.place, stream);
  };
  ops::dispatch_doubles(
      "finish_parts", pixels, {}, 1, [&](kernels::Cpu) { finish(nullptr); }, [&](auto stream) { finish(stream); });
}

}  // namespace

DeviceStep::DeviceStep(int64_t rows, int64_t views, int64_t bytes, at::Device device)
    : rows_(rows),
      device_(device),
      buffer_(pixel_buffer(bytes, device)),
      parts_(static_cast<size_t>(rows)),
      beside_(static_cast<size_t>(rows)),
      begun_(static_cast<size_t>(rows)),
      params_(static_cast<size_t>(rows * views)) {}

void DeviceStep::put(int64_t row, const kernels::ImagePart& part, const std::vector<kernels::ViewParams>& params,
                     std::unique_ptr<DeviceDecoder::Image> begun) {
  const auto r = static_cast<size_t>(row);
  for (size_t v = 0; v < params.size(); ++v) params_[v * static_cast<size_t>(rows_) + r] = params[v];
  if (begun) {
    parts_[r] = {part, -1};  // to_device() sets the place
    begun_[r] = std::move(begun);
    return;
  }
  const int64_t bytes = bytes_of(part);
  const int64_t place = used_.fetch_add(bytes);
  parts_[r] = {part, place};
  if (place + bytes <= buffer_.numel()) {
    std::memcpy(buffer_.mutable_data_ptr<uint8_t>() + place, part.pixels.data, static_cast<size_t>(bytes));
  } else {
    beside_[r].assign(part.pixels.data, part.pixels.data + bytes);
  }
}

at::Tensor DeviceStep::to_device(DeviceDecoder* decoder) {
  const auto beside = [](const std::vector<uint8_t>& part) { return !part.empty(); };
  const int64_t used = used_;
  const bool fits = std::none_of(beside_.begin(), beside_.end(), beside);
  std::vector<StartedPart> begun;
  int64_t all = used;
  for (size_t r = 0; r < begun_.size(); ++r) {
    if (!begun_[r]) continue;
    parts_[r].place = (all + kAlignment - 1) / kAlignment * kAlignment;
    all = parts_[r].place + bytes_of(parts_[r].part);
    begun.push_back({std::move(begun_[r]), parts_[r].place});
  }
  if (device_.is_cpu() && fits && begun.empty()) return buffer_.narrow(0, 0, used);
  const at::Tensor pixels = at::empty({all}, at::TensorOptions(at::kByte).device(device_));
  const int64_t together = std::min(used, buffer_.numel());
  pixels.narrow(0, 0, together).copy_(buffer_.narrow(0, 0, together), /*non_blocking=*/true);
  for (size_t r = 0; r < beside_.size(); ++r) {
    if (beside_[r].empty()) continue;
    const auto bytes = static_cast<int64_t>(beside_[r].size());
    pixels.narrow(0, parts_[r].place, bytes).copy_(at::from_blob(beside_[r].data(), {bytes}, at::kByte));
    beside_[r] = {};
  }
  buffer_ = at::Tensor();
  if (!begun.empty()) finish_parts(pixels, std::move(begun), *decoder);
  return pixels;
}

at::Tensor DeviceStep::views(const at::Tensor& pixels, int64_t first, int64_t count,
                             const kernels::AugmentOptions& options, at::ScalarType dtype, int threads) const {
  const at::Tensor out = empty_images(rows_ * count, options, dtype, device_);
  const auto begin = params_.begin() + first * rows_;
  ops::augment_parts(out, pixels, parts_, {begin, begin + count * rows_}, options, threads);
  return out;
}

}  // namespace pal::data
