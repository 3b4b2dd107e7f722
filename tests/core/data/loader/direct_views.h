// direct_views: the views of some samples by one call of the kernel on whole images. The loader must give the same.
#pragma once

#include <ATen/ops/empty.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/data/loader/loader.h"

namespace pal::data {

template <class T>
at::Tensor direct_views(const Dataset& data, const LoaderOptions& o, const std::vector<int64_t>& samples,
                        int64_t step) {
  std::vector<std::vector<uint8_t>> bytes(samples.size());
  std::vector<kernels::ImageView> images(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    data.read(samples[i], bytes[i]);
    images[i] = data.image(samples[i], bytes[i]);
  }
  const auto n = static_cast<int64_t>(samples.size()), v = static_cast<int64_t>(o.views.policies.size());
  kernels::AugmentOptions augment = o.views.large;
  augment.step = static_cast<uint64_t>(step);
  at::Tensor out = empty_images(v * n, augment, o.dtype);
  std::vector<char> scratch(kernels::cpu::augment_scratch_bytes({images.data(), n}, augment, {1}));
  kernels::cpu::augment<T>(out.data_ptr<T>(), {images.data(), n}, {samples.data(), n}, {o.views.policies.data(), v},
                           augment, {scratch.data(), static_cast<int64_t>(scratch.size())}, {1});
  return out;
}

}  // namespace pal::data
