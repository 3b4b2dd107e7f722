// fallback: every other operator on CUDA tensors: it runs on the CPU, in the place of LibTorch's kernels.
//
// Inputs are read after the current stream, and no other, has come to its end. Outputs are computed beside the device's
// memory and written in stream order (host_copy.h). An operator that only makes another view of its input waits for
// nothing. Structured operators arrive as their out form, composite ones in pieces; convolution must be named, or
// LibTorch's composite looks for cuDNN.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/library.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "tests/simgpu/runtime/counters.h"
#include "tests/simgpu/runtime/stand_in.h"
#include "tests/simgpu/torch/host_copy.h"

namespace simgpu {
namespace {

using c10::IValue;

// What LibTorch's operator brings to the host: the host waits for the device there.
const std::set<std::string> kReads = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal",
                                      "aten::masked_select", "aten::is_nonzero"};

bool on_device(const at::Tensor& t) { return t.defined() && t.is_cuda(); }

enum class Use { shape, read, write };

Use use_of(const c10::Argument& argument, bool is_view) {
  if (is_view) return Use::shape;
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite() ? Use::write : Use::read;
}

// Returns alias an argument that is not written.
bool makes_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& out : schema.returns()) {
    if (out.alias_info() != nullptr && !out.alias_info()->isWrite()) return true;
  }
  return false;
}

// One call: the tensors that the CPU gets, beside those that they stand for.
struct Call {
  struct Pair {
    at::Tensor device, host;
    Use use;
  };
  std::vector<Pair> pairs;
  at::Device device{at::kCUDA, c10::cuda::current_device()};

  at::Tensor to_host(const at::Tensor& t, Use use) {
    if (!on_device(t)) return t;
    device = t.device();
    const at::Tensor host = use == Use::shape ? host_alias(t) : use == Use::read ? host_view(t) : host_clone(t);
    pairs.push_back({t, host, use});
    return host;
  }

  IValue to_host(const IValue& value, Use use) {
    if (value.isTensor()) return to_host(value.toTensor(), use);
    if (value.isTensorList()) {
      c10::List<at::Tensor> out;
      for (const at::Tensor& t : value.toTensorVector()) out.push_back(to_host(t, use));
      return out;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> out;
      for (const std::optional<at::Tensor>& t : value.toOptionalTensorVector())
        out.push_back(t ? std::optional<at::Tensor>(to_host(*t, use)) : std::nullopt);
      return out;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) return at::Device(at::kCPU);
    return value;
  }

  // A result of the CPU's operator as a tensor on the device.
  at::Tensor to_device(const at::Tensor& result) const {
    if (!result.defined()) return result;
    for (const Pair& p : pairs) {
      if (p.use == Use::write && result.is_same(p.host)) return p.device;
    }
    for (const Pair& p : pairs) {
      if (p.use != Use::write && result.is_alias_of(p.host)) return view_of(p, result);
    }
    const at::Tensor fresh = at::empty_strided(result.sizes(), result.strides(), result.options().device(device));
    write_in_stream(fresh, result);
    return fresh;
  }

  void write_back() const {
    for (const Pair& p : pairs) {
      if (p.use != Use::write) continue;
      if (p.device.sizes() != p.host.sizes()) p.device.resize_(p.host.sizes());
      write_in_stream(p.device, p.host);
    }
  }

 private:
  static at::Tensor view_of(const Pair& p, const at::Tensor& result) {
    auto impl = c10::make_intrusive<at::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(p.device.storage()),
                                                    p.device.key_set(), result.dtype());
    impl->set_sizes_and_strides(result.sizes(), result.strides());
    impl->set_storage_offset(result.storage_offset());  // host_alias() covers the whole storage
    return at::Tensor(std::move(impl));
  }
};

void count(const c10::FunctionSchema& schema) {
  if (simgpu_counts() == 0) return;
  const std::string name = schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  simgpu_count(static_cast<int>(Count::op), name.c_str(), 0);
  if (kReads.count(schema.name()) > 0) simgpu_count(static_cast<int>(Count::read), name.c_str(), 0);
}

// SIMGPU_DETERMINISTIC=1: a convolution or product whose algorithm may differ from run to run is named. (The CPU's
// operators in its place repeat their bits anyway.)
void check_deterministic(const std::string& name) {
  static const bool asked = std::getenv("SIMGPU_DETERMINISTIC") != nullptr;
  if (!asked || (name != "aten::convolution" && name != "aten::mm")) return;
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() && context.deterministicCuDNN() && !context.benchmarkCuDNN() &&
      std::getenv("CUBLAS_WORKSPACE_CONFIG") != nullptr)
    return;
  std::fprintf(stderr, "simgpu: %s runs with an algorithm that may differ from run to run\n", name.c_str());
}

IValue back(const Call& call, const IValue& value) {
  if (value.isTensor()) return call.to_device(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> out;
  for (const at::Tensor& t : value.toTensorVector()) out.push_back(call.to_device(t));
  return out;
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const bool is_view = makes_view(schema);
  if (!is_view) count(schema);
  check_deterministic(schema.name());
  const Quiet quiet;
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                 c10::autocast_dispatch_keyset);
  Call call;
  const size_t arguments = schema.arguments().size(), first = stack->size() - arguments;
  for (size_t i = 0; i < arguments; ++i) {
    IValue& value = (*stack)[first + i];
    value = call.to_host(value, use_of(schema.arguments()[i], is_view));
  }
  op.callBoxed(stack);
  call.write_back();
  const size_t returns = schema.returns().size();
  for (size_t i = stack->size() - returns; i < stack->size(); ++i) (*stack)[i] = back(call, (*stack)[i]);
}

}  // namespace
}  // namespace simgpu

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&simgpu::run_on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  for (const char* name : {"convolution", "convolution_backward", "mm"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&simgpu::run_on_cpu>());
}
