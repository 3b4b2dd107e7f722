// nvjpeg_decoder: a DeviceDecoder by NVIDIA's nvJPEG, its "hybrid" way: entropy decoding in the worker, all else on the GPU.
//
// Each image has a state, a parsed stream and pinned memory of its own, from begin() until the GPU is done with it; then
// they serve the next image. The device's work memory is one for all: finish() is on one stream.
// Does: three components coded as Y, Cb, Cr, baseline or progressive, of the samplings that nvJPEG knows. Gray, RGB and CMYK
//   files, odd component numbers and what nvJPEG itself refuses are left to libjpeg.
// Math: nvJPEG's inverse transform and its interpolation of chroma are its own: pixels are near libjpeg's, not equal.
// Reference: nvJPEG's documentation, "decode using decoupled phases".
#pragma once

#include <memory>
#include <string>

#include "core/data/image/device_decoder.h"

namespace pal::data {

// Throws Error (usage) where nvJPEG is not in this build or not on this machine.
std::shared_ptr<DeviceDecoder> make_nvjpeg_decoder(int device);

// Whether it could be made, without a look at the GPU.
struct NvjpegState {
  std::string version;  // "13.0.1"; empty: there is none
  std::string reason;   // why there is none, and what to do
};
NvjpegState nvjpeg_state();

}  // namespace pal::data
