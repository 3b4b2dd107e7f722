#include "core/ops/torch_cuda.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <cstdlib>

#include "kernels/base/error.h"

namespace pal::ops {

void load_torch_cuda() {
  // Found by the run path of the program. Never unloaded, because its operators stay registered.
  void* library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
  const char* reason = library == nullptr ? dlerror() : nullptr;
  PAL_CHECK(library != nullptr, "LibTorch's CUDA half cannot be loaded",
            reason == nullptr ? "libtorch_cuda.so" : reason,
            "install a CUDA build of LibTorch (launch/setup), or compute on the CPU");
}

void use_deterministic_algorithms() {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // cuBLAS reads it when it makes a handle
  at::Context& context = at::globalContext();
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
}

}  // namespace pal::ops
