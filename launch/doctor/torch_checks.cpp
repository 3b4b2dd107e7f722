// torch_checks: on one device: LibTorch's operators against the CPU's, and views that the device makes against those of
// the loader's threads.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <memory>

#include "core/data/dataset.h"
#include "core/data/image/jpeg.h"
#include "core/data/image/nvjpeg_decoder.h"
#include "core/data/loader/augment_spec.h"
#include "core/data/loader/loader.h"
#include "core/data/shard_writer.h"
#include "core/model/precision.h"
#include "core/setup/run_spec.h"
#include "kernels/base/philox.h"
#include "launch/doctor/gpu_parts.h"

namespace pal::launch::detail {
namespace {

at::Tensor drawn(at::IntArrayRef shape, uint64_t stream) {
  Random random(1, Purpose::bench, stream);
  int64_t count = 1;
  for (const int64_t side : shape) count *= side;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = 2 * random.next_float() - 1;
  return at::from_blob(numbers.data(), shape, at::kFloat).clone();
}

using Operator = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// The result of an operator and the gradients of its inputs, on the CPU.
std::vector<at::Tensor> results(const Operator& op, const std::vector<at::Tensor>& inputs, at::Device device,
                                model::Precision precision) {
  std::vector<at::Tensor> here;
  for (const at::Tensor& t : inputs) here.push_back(t.detach().to(device, t.scalar_type(), false, true));
  for (at::Tensor& t : here) t.requires_grad_(t.is_floating_point());
  at::Tensor out;
  {
    const model::Autocast autocast(precision, device.type());
    out = op(here);
  }
  out.backward(drawn(out.sizes(), 50).to(device, out.scalar_type()));
  std::vector<at::Tensor> all = {out.detach().to(at::kCPU, at::kDouble)};
  for (const at::Tensor& t : here) {
    if (t.grad().defined()) all.push_back(t.grad().to(at::kCPU, at::kDouble));
  }
  return all;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  const double norm = b.norm().item<double>();
  return (a - b).norm().item<double>() / (norm > 0 ? norm : 1);
}

// TF32 rounds products to ten bits: switched off for the length of a scope, so that a small limit holds.
class ExactConvolutions {
 public:
  ExactConvolutions() { at::globalContext().setAllowTF32CuDNN(false); }
  ~ExactConvolutions() { at::globalContext().setAllowTF32CuDNN(before_); }
  ExactConvolutions(const ExactConvolutions&) = delete;
  ExactConvolutions& operator=(const ExactConvolutions&) = delete;

 private:
  const bool before_ = at::globalContext().allowTF32CuDNN();
};

// A set of the loader, its views made by `render`.
struct Loading {
  std::string data;
  data::Render render = data::Render::workers;
  at::Device device = at::kCPU;
  std::shared_ptr<data::DeviceDecoder> decoder = nullptr;
};

constexpr int64_t kSteps = 6, kBatch = 8;

// Views of some steps; those of a device stay there, so that no copy is waited for.
std::vector<at::Tensor> load(const Loading& how) {
  const setup::RunSpec spec = setup::make_run_spec(config::Config::defaults(
      {"data.size=16", "data.decode=full", "augment.blur=[0.5]", "augment.solarize=[0.2]", "train.seed=3"}));
  const auto set = data::Dataset::open(how.data);
  data::LoaderOptions options;
  options.plan = {set->size(), kBatch, 3};
  options.views = data::view_set(spec.augment, *set);
  options.threads = 2;
  options.memory_mb = 64;
  options.planned_until = kSteps;
  options.render = how.render;
  options.device = how.device;
  options.decoder = how.decoder;
  data::Loader loader(set, options);
  std::vector<at::Tensor> views;
  for (int64_t step = 0; step < kSteps; ++step) views.push_back(loader.next().images);
  return views;
}

// The largest difference of two sets of views, and the root of the mean square, in units of the pixels' bytes.
struct PixelDifference {
  double largest = 0, typical = 0;
};
PixelDifference pixel_difference(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected) {
  constexpr double kByte = 0.225 * 255;  // views are divided by the smallest default of augment.std or more
  PixelDifference out;
  for (size_t step = 0; step < expected.size(); ++step) {
    const at::Tensor off = (got[step].to(at::kCPU, at::kDouble) - expected[step].to(at::kDouble)).abs();
    const double most = off.max().item<double>();
    out.largest = most <= out.largest ? out.largest : most;  // keeps NaN
    out.typical += off.square().mean().item<double>() / static_cast<double>(expected.size());
  }
  return {kByte * out.largest, kByte * std::sqrt(out.typical)};
}

}  // namespace

void write_small_set(const std::string& path, SmallSet kind, int64_t samples) {
  constexpr int32_t kSide = 20;
  data::ShardSpec spec;
  spec.encoding = kind == SmallSet::raw ? data::Encoding::raw : data::Encoding::jpeg;
  if (kind == SmallSet::raw) spec.shape = {kSide, kSide, 3};
  spec.classes = {"left", "middle", "right"};
  data::ShardWriter writer(path, spec);
  Random random(1, Purpose::bench, 60);
  for (int64_t i = 0; i < samples; ++i) {
    std::vector<uint8_t> pixels;
    for (int32_t p = 0; p < kSide * kSide; ++p) {
      const uint8_t base = p % kSide / 7 == i % 3 ? 170 : 40;
      for (int c = 0; c < 3; ++c) pixels.push_back(static_cast<uint8_t>(base + random.below(60)));
    }
    const std::vector<uint8_t> bytes =
        kind == SmallSet::raw ? pixels : data::encode_jpeg(pixels.data(), kSide, kSide, 3, 95, data::Chroma::full);
    writer.append({bytes.data(), bytes.size(), i % 3, std::to_string(i)});
  }
  writer.finish();
  writer.publish();
}

Checked check_operators(int device) {
  const struct {
    const char* name;
    std::vector<at::Tensor> inputs;
    Operator run;
    double allowed;  // fp32
  } operators[] = {
      {"mm", {drawn({65, 97}, 51), drawn({97, 33}, 52)}, [](auto& x) { return at::mm(x[0], x[1]); }, 1e-5},
      {"linear",
       {drawn({65, 97}, 53), drawn({33, 97}, 54), drawn({33}, 55)},
       [](auto& x) { return at::linear(x[0], x[1], x[2]); },
       1e-5},
      {"convolution",
       {drawn({4, 8, 17, 17}, 56), drawn({12, 8, 3, 3}, 57)},
       [](auto& x) {
         return at::conv2d(x[0], x[1], {}, at::IntArrayRef({2, 2}), at::IntArrayRef({1, 1}));
       },
       1e-5},
      {"attention",
       {drawn({6, 20, 16}, 58), drawn({6, 16, 20}, 59), drawn({16}, 60)},
       [](auto& x) {
         return at::gelu(at::layer_norm(at::bmm(at::softmax(at::bmm(x[0], x[1]), -1), x[0]), {16}, x[2]));
       },
       1e-5},
      {"sum",
       {drawn({300, 70}, 61)},
       [](auto& x) {
         return at::cat({x[0].sum(0), x[0].sum(1)});
       },
       1e-5},
  };
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  Wrong wrong;
  for (const auto& op : operators) {
    const std::vector<at::Tensor> expected = results(op.run, op.inputs, at::kCPU, model::Precision::full);
    const auto compare = [&](const char* how, model::Precision precision, double allowed) {
      const std::vector<at::Tensor> got = results(op.run, op.inputs, cuda, precision);
      for (size_t k = 0; k < got.size(); ++k)
        wrong.compare(fmt::format("{} of LibTorch's {} in {}", k == 0 ? "the result" : "a gradient", op.name, how),
                      distance(got[k], expected[k]), allowed);
    };
    {
      const ExactConvolutions exact;
      compare("float32", model::Precision::full, op.allowed);
    }
    compare("float32 with its default precision", model::Precision::full, 3e-3);
    compare("bf16 autocast", model::Precision::bf16, 5e-2);
  }
  return wrong.result(
      fmt::format("{} of LibTorch's operators and their gradients, in float32 and bf16 autocast, agree "
                  "with the CPU",
                  std::size(operators)));
}

Checked check_loader(int device, const std::string& folder, int rank) {
  const std::string path = fmt::format("{}/raw-{}.h5", folder, rank);
  write_small_set(path, SmallSet::raw, 3 * kBatch);
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  const PixelDifference off = pixel_difference(load({path, data::Render::device, cuda}), load({path}));
  Wrong wrong;
  wrong.compare("a pixel of a view made on the device, in 255ths,", off.largest, 1.5);
  return wrong.result(fmt::format("views of {} steps, copied and made on the device, agree with the CPU", kSteps));
}

Checked check_nvjpeg(int device, const std::string& folder, int rank) {
  const std::string path = fmt::format("{}/jpeg-{}.h5", folder, rank);
  write_small_set(path, SmallSet::jpeg, 3 * kBatch);
  const at::Device cuda(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  const PixelDifference off =
      pixel_difference(load({path, data::Render::device, cuda, data::make_nvjpeg_decoder(device)}), load({path}));
  Wrong wrong;  // nvJPEG has an inverse transform of its own
  wrong.compare("the typical pixel of a view of a JPEG file decoded by nvJPEG, in 255ths,", off.typical, 2);
  return wrong.result("JPEG files decoded by nvJPEG " + data::nvjpeg_state().version + " agree with libjpeg");
}

}  // namespace pal::launch::detail
