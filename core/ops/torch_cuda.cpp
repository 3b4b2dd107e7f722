#include "core/ops/torch_cuda.h"

#include <dlfcn.h>

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

}  // namespace pal::ops
