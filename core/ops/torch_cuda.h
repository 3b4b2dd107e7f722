// torch_cuda: the CUDA half of LibTorch (libtorch_cuda.so), loaded by a process that computes on a GPU and by no other.
//
// It registers its operators when it is loaded, and nothing calls into it by name, so the program need not be linked with
// it: a process on the CPU is spared 270 MB of memory and 0.2 s at its start.
#pragma once

namespace pal::ops {

// Call it before LibTorch is asked for anything of CUDA: LibTorch looks for its CUDA half once. A second call does nothing.
// Throws Error (usage) where it cannot be loaded.
void load_torch_cuda();

}  // namespace pal::ops
