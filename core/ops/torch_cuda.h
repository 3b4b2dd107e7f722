// torch_cuda: loads the CUDA half of LibTorch (libtorch_cuda.so) in processes that compute on a GPU, and its switch for
// deterministic algorithms.
//
// The library registers its operators when it is loaded, and no code calls it by name, so the program is not linked
// with it. A process on the CPU saves 270 MB of memory and 0.2 s at its start.
#pragma once

namespace pal::ops {

// Call it before the first use of CUDA in LibTorch, which searches for its CUDA half once. A second call has no effect.
// Throws Error (usage) if the library cannot be loaded.
void load_torch_cuda();

// From now on LibTorch, cuDNN and cuBLAS use algorithms that give the same bits in every run on the same device.
// LibTorch warns, by name, of an operator that has none. Call it before the first product on the device.
void use_deterministic_algorithms();

}  // namespace pal::ops
