#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>

#include <algorithm>

#include "core/ops/dispatch.h"
#include "core/ops/named_tensors.h"
#include "core/ops/tensor_view.h"
#include "core/optim/rules.h"

namespace pal::optim {
namespace {

using kernels::UpdateRun;

constexpr int64_t kRun = 1 << 12;  // elements per run

template <class T>
at::Tensor uploaded(const std::vector<T>& values, at::ScalarType type, at::Device device) {
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
  return at::from_blob(const_cast<T*>(values.data()), {bytes / static_cast<int64_t>(c10::elementSize(type))}, type)
      .to(device);
}

// On the CPU the rules run their own loops.
void not_here(kernels::Cpu) { PAL_ASSERT(false, "a device update is for parameters on a device"); }

float* element(const ops::NamedTensors& tensors, size_t k, int64_t at) {
  return tensors.empty() ? nullptr : tensors[k].second.data_ptr<float>() + at;
}

}  // namespace

DeviceUpdate::DeviceUpdate(const ops::NamedTensors& parameters, const ops::NamedTensors& first,
                           const ops::NamedTensors& second)
    : parameters_(parameters), first_(first), second_(second) {}

bool DeviceUpdate::prepare(const std::vector<at::Tensor>& gradients) {
  if (parameters_.empty() || parameters_[0].second.is_meta()) return false;
  std::vector<const void*> pointers;
  for (const at::Tensor& g : gradients) pointers.push_back(g.defined() ? g.const_data_ptr() : nullptr);
  if (table_.defined() && pointers == pointers_) return true;
  std::vector<UpdateRun> runs;
  std::vector<int64_t> begin = {0};
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const at::Tensor& p = parameters_[k].second;
    PAL_ASSERT(p.scalar_type() == at::kFloat, "parameters on a GPU are float32");
    for (int64_t at = 0; gradients[k].defined() && at < p.numel(); at += kRun) {
      runs.push_back({element(parameters_, k, at), element(first_, k, at), element(second_, k, at),
                      gradients[k].const_data_ptr<float>() + at, std::min(kRun, p.numel() - at),
                      static_cast<int32_t>(k), decay_of(p) == Decay::full ? 1 : 0});
    }
    begin.push_back(static_cast<int64_t>(runs.size()));
  }
  const at::Device device = parameters_[0].second.device();
  table_ = uploaded(runs, at::kByte, device);
  begin_ = uploaded(begin, at::kLong, device);
  factors_ = at::ones({static_cast<int64_t>(parameters_.size())}, parameters_[0].second.options().requires_grad(false));
  count_ = static_cast<int64_t>(runs.size());
  pointers_ = std::move(pointers);
  return true;
}

kernels::Span<const UpdateRun> DeviceUpdate::runs() const {
  return {static_cast<const UpdateRun*>(table_.const_data_ptr()), count_};
}

void DeviceUpdate::momentum(const std::vector<at::Tensor>& gradients, const kernels::MomentumNumbers<float>& numbers,
                            double eta) {
  if (!prepare(gradients)) return;
  ops::dispatch_doubles("momentum", factors_, {}, 1, not_here, [&](auto stream) {
    if (eta > 0) {
      const ops::ScratchMemory scratch(kernels::cuda::adaptation_scratch_bytes(count_), factors_);
      kernels::cuda::adaptation(ops::span<float>(factors_), runs(), ops::span<const int64_t>(begin_), numbers.decay,
                                eta, scratch, stream);
    }
    kernels::cuda::momentum(runs(), ops::span<const float>(factors_), numbers, stream);
  });
}

void DeviceUpdate::adam(const std::vector<at::Tensor>& gradients, const kernels::AdamNumbers<float>& numbers) {
  if (!prepare(gradients)) return;
  ops::dispatch_doubles("adam", factors_, {}, 1, not_here,
                        [&](auto stream) { kernels::cuda::adam(runs(), numbers, stream); });
}

}  // namespace pal::optim
