// cases_image: two VICReg views of decoded JPEGs; the parameters of every view are drawn once, for all sides.
#include <ATen/ops/empty.h>

#include "core/io/safetensors.h"
#include "core/ops/named_tensors.h"
#include "core/ops/tensor_view.h"
#include "kernels/augment.h"
#include "kernels/augment_params.h"
#include "tests/bench/cases.h"

namespace pal::bench {
namespace {

using kernels::ViewPolicy;

// The policies of the official VICReg code.
std::vector<ViewPolicy> vicreg_policies() {
  ViewPolicy first, second;
  first.blur = 1.0f;
  second.blur = 0.1f;
  second.solarize = 0.2f;
  return {first, second};
}

kernels::AugmentOptions view_options(int32_t size) {
  kernels::AugmentOptions o;
  o.seed = 1;
  o.size = size;
  o.interpolation = kernels::Interpolation::bicubic;
  const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
  std::copy_n(mean, 3, o.mean);
  std::copy_n(std, 3, o.std);
  return o;
}

// The images in the folder's images.safetensors, "00", "01", …, each (height, width, 3).
std::vector<kernels::ImageView> image_views(const InputTensors& images) {
  std::vector<kernels::ImageView> views;
  for (const auto& [name, image] : images) {
    if (name != "params")
      views.push_back(
          {image.data_ptr<uint8_t>(), static_cast<int32_t>(image.size(0)), static_cast<int32_t>(image.size(1)), 3});
  }
  return views;
}

// The parameters of a view for the peer: one line per view and image, in the order of tests/bench/kernels_peer.py.
at::Tensor drawn_params(const std::vector<kernels::ImageView>& images, const kernels::AugmentOptions& options) {
  const std::vector<ViewPolicy> policies = vicreg_policies();
  constexpr int64_t kColumns = 18;
  const at::Tensor params = at::empty({static_cast<int64_t>(policies.size() * images.size()), kColumns}, at::kDouble);
  double* to = params.data_ptr<double>();
  for (size_t v = 0; v < policies.size(); ++v) {
    for (size_t i = 0; i < images.size(); ++i) {
      const kernels::ViewParams p = kernels::draw_view_params(
          policies[v], options.seed, options.step, i, static_cast<uint32_t>(v), images[i].height, images[i].width);
      for (const double x :
           {double(p.crop.top), double(p.crop.left), double(p.crop.height), double(p.crop.width), double(p.flip),
            double(p.jitter), double(p.gray), double(p.blur), double(p.solarize), double(p.blur_sigma)})
        *to++ = x;
      for (const int8_t step : p.jitter_order) *to++ = step;
      for (const float factor : p.jitter_factor) *to++ = factor;
    }
  }
  return params;
}

}  // namespace

std::vector<KernelCase> image_bench_cases(BenchSizes sizes) {
  const int32_t size = sizes == BenchSizes::full ? 224 : 32;
  KernelCase c{.name = "augment",
               .params = {{"pixels", size}, {"views", 2}, {"images", 20}, {"recipe", "VICReg, bicubic"}}};
  // Each step of the peer rounds to 256 values, and rounding across the threshold changes what solarize inverts.
  c.peers = {{"torchvision v2 float"}, {"torchvision v2 bytes", 0.05}};
  c.bytes = 2.0 * 20 * 3 * size * size * 4;
  c.inputs = [=](const std::string& folder) {
    io::SafetensorsFile file = io::read_safetensors(folder + "/images.safetensors");  // decoded by the peer
    ops::NamedTensors inputs(file.tensors.begin(), file.tensors.end());
    inputs.emplace_back("params", drawn_params(image_views(file.tensors), view_options(size)));
    return inputs;
  };
  c.ours = [=](const InputTensors& in, int threads) {
    const std::vector<kernels::ImageView> images = image_views(in);
    const int64_t count = static_cast<int64_t>(images.size());
    std::vector<int64_t> samples(images.size());
    for (int64_t i = 0; i < count; ++i) samples[i] = i;
    const at::Tensor out = at::empty({2 * count, 3, size, size});
    return KernelRun{[=] {
                       (void)in;  // keeps the pixels alive
                       const kernels::AugmentOptions options = view_options(size);
                       const std::vector<ViewPolicy> policies = vicreg_policies();
                       const ops::ScratchMemory scratch(
                           kernels::cpu::augment_scratch_bytes(ops::span_of(images), options, {threads}));
                       kernels::cpu::augment<float>(out.data_ptr<float>(), ops::span_of(images), ops::span_of(samples),
                                                    ops::span_of(policies), options, scratch, {threads});
                       return 0.0;
                     },
                     {{"views", out}}};
  };
  return {c};
}

}  // namespace pal::bench
