// nvjpeg_decoder: a DeviceDecoder with nvJPEG's "hybrid" backend: loader threads decode the entropy coding, the GPU the
// rest.
//
// Each image has a state, a parsed stream and pinned memory of its own, from begin() until the GPU has completed it;
// then the next image reuses them. All images share one work buffer on the device, because finish() uses one stream.
// Supports: three components coded as Y, Cb, Cr, baseline or progressive, in the samplings that nvJPEG supports. Gray,
//   RGB and CMYK files, odd component numbers and files that nvJPEG refuses are left to libjpeg.
// Math: nvJPEG's inverse transform and its interpolation of chroma are its own: pixels are close to libjpeg's, not
//   equal.
// Reference: nvJPEG's documentation, "decode using decoupled phases".
#pragma once

#include <memory>
#include <string>

#include "core/data/image/device_decoder.h"

namespace pal::data {

// Throws Error (usage) when nvJPEG is not in this build or not on this machine.
std::shared_ptr<DeviceDecoder> make_nvjpeg_decoder(int device);

// Whether nvJPEG can be used; does not touch the GPU.
struct NvjpegState {
  std::string version;  // "13.0.1"; empty: there is none
  std::string reason;   // why there is none, and what to do
};
NvjpegState nvjpeg_state();

}  // namespace pal::data
