// device_decoder: JPEG decoding that a loader thread begins and the device finishes.
//
// begin() runs on a loader thread and does everything that depends on the file's bytes (headers, entropy coding), with
// all checks: an image that was begun can always be finished.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/image/jpeg.h"
#include "kernels/base/cuda.h"

namespace pal::data {

class DeviceDecoder {
 public:
  // An image that was begun. It must not outlive its decoder.
  class Image {
   public:
    virtual ~Image() = default;
  };
  virtual ~DeviceDecoder() = default;

  // Begins the decode of `box` of a file, in full size, and takes the file's bytes. It returns null and leaves the
  // bytes when the file is damaged or of a form that this decoder does not support; libjpeg then decodes it or reports
  // the error. The file has passed the checks of jpeg_header.h.
  // Thread: any.
  virtual std::unique_ptr<Image> begin(std::vector<uint8_t>& file, const JpegBox& box) = 0;
  // out: (box.height, box.width, 3), RGB, in the device's memory.
  // Async: on `stream`, which is the same one in all calls; null on the CPU.
  // Thread: one.
  virtual void finish(std::unique_ptr<Image> image, uint8_t* out, cudaStream_t stream) = 0;
};

}  // namespace pal::data
