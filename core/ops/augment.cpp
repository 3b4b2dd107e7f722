#include "core/ops/augment.h"

#include "core/ops/dispatch.h"

namespace pal::ops {

void augment_parts(const at::Tensor& out, const at::Tensor& pixels, const std::vector<PlacedPart>& parts,
                   const std::vector<kernels::ViewParams>& params, const kernels::AugmentOptions& options,
                   int threads) {
  const auto views = static_cast<int64_t>(params.size());
  PAL_ASSERT(parts.empty() ? views == 0 : views % static_cast<int64_t>(parts.size()) == 0,
             "each part has as many views as the others");
  PAL_ASSERT(out.size(0) == views && out.stride(0) == int64_t{options.channels} * options.size * options.size,
             "room for the views, without gaps");
  const auto placed = [&](const uint8_t* base) {
    std::vector<kernels::ImagePart> all;
    for (int64_t p = 0; p < views; ++p) {
      const PlacedPart& part = parts[static_cast<size_t>(p) % parts.size()];
      all.push_back(part.part);
      all.back().pixels.data = base + part.place;
    }
    return all;
  };
  dispatch(
      "augment_parts", out, {pixels}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const std::vector<kernels::ImagePart> all = placed(pixels.const_data_ptr<uint8_t>());
        const kernels::Span<const kernels::ImagePart> span{all.data(), views};
        const ScratchMemory scratch(kernels::cpu::augment_parts_scratch_bytes(span, options, how));
        kernels::cpu::augment_parts<T>(out.data_ptr<T>(), span, {params.data(), views}, options, scratch, how);
      },
      [&](auto t, auto stream) {
        using T = decltype(t);
        const std::vector<kernels::ImagePart> all = placed(pixels.const_data_ptr<uint8_t>());
        const kernels::Span<const kernels::ImagePart> span{all.data(), views};
        const ScratchMemory scratch(kernels::cuda::augment_parts_scratch_bytes(span, options), out);
        kernels::cuda::augment_parts<T>(static_cast<T*>(out.data_ptr()), span, {params.data(), views}, options, scratch,
                                        stream);
      });
}

}  // namespace pal::ops
