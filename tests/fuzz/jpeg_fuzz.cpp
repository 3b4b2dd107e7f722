// jpeg_fuzz: feeds bytes to the check of JPEG headers and, if it accepts them, to the decoder.
//
// With PAL_FUZZ_ACCEPT set, an input that is no image fails. This proves that the seeds reach the decoder.
#include <cstdint>
#include <cstdlib>

#include "core/data/image/jpeg.h"
#include "kernels/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pal::data::ImageLimits limits{1 << 18, 20};
  std::vector<uint8_t> pixels;
  bool accepted = false;
  try {
    const pal::data::JpegHeader header = pal::data::inspect_jpeg(data, size, pal::data::JpegWalk::whole, limits);
    if (header.end > size || header.width <= 0 || header.height <= 0 || header.scans > limits.max_scans)
      __builtin_trap();
  } catch (const pal::Error& error) {
    if (error.code() != pal::Exit::data) throw;
  }
  static pal::data::JpegDecoder decoder(
      limits);  // kept between files, as in the loader: the state after one file must not affect the next
  try {
    pal::data::JpegPart part;
    part.eighths = size > 0 ? 1 + data[size - 1] % 8 : 8;
    decoder.decode(data, size, part, pixels);
    accepted = true;
    part.box = {0, 0, 1, 1};
    decoder.decode(data, size, part, pixels);
  } catch (const pal::Error& error) {
    if (error.code() != pal::Exit::data) throw;
  }
  if (!accepted && std::getenv("PAL_FUZZ_ACCEPT")) __builtin_trap();
  return 0;
}
