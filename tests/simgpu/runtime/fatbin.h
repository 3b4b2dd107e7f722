// fatbin: finds the PTX text inside a fat binary as nvcc links it into a program.
#pragma once

#include <string_view>
#include <vector>

namespace simgpu {

struct PtxImage {
  std::string_view text;  // inside the fat binary, which lives as long as the program
  int target = 0;         // 75 for compute_75
};

// `wrapper` is what __cudaRegisterFatBinary is given. Machine code (cubin) is passed over.
// Throws Fault(bad_ptx), with what to do, if the data is not a fat binary, or holds no PTX, or only compressed PTX.
std::vector<PtxImage> ptx_images(const void* wrapper);

// The one that a device takes which can run them all: the highest target.
const PtxImage& newest(const std::vector<PtxImage>& images);

}  // namespace simgpu
