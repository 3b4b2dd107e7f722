#include "core/data/loader/device_decode.h"

#include "core/ops/dispatch.h"

namespace pal::data {

void finish_parts(const at::Tensor& pixels, std::vector<StartedPart> parts, DeviceDecoder& decoder) {
  const auto finish = [&](cudaStream_t stream) {
    for (StartedPart& p : parts) decoder.finish(std::move(p.image), pixels.mutable_data_ptr<uint8_t>() + p.place, stream);
  };
  ops::dispatch_doubles(
      "finish_parts", pixels, {}, 1, [&](kernels::Cpu) { finish(nullptr); }, [&](auto stream) { finish(stream); });
}

}  // namespace pal::data
