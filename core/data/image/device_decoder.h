// device_decoder: JPEG files whose pixels are made on the device: a worker begins an image, the device finishes it.
//
// What depends on the file's bytes (headers, entropy coding) is done and checked by begin(), in the worker: what was begun
// can be finished.
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

  // What `box` of a file needs, in full size. Takes the file's bytes; where it returns null they are left: the file is of a
  // form that this decoder does not do, or damaged, and libjpeg decodes it or says what is wrong. The file has passed the
  // gate of jpeg_header.h.
  // Thread: any.
  virtual std::unique_ptr<Image> begin(std::vector<uint8_t>& file, const JpegBox& box) = 0;
  // out: (box.height, box.width, 3), RGB, in the device's memory.
  // Async: on `stream`, which is the same one in all calls; null on the CPU.
  // Thread: one.
  virtual void finish(std::unique_ptr<Image> image, uint8_t* out, cudaStream_t stream) = 0;
};

}  // namespace pal::data
