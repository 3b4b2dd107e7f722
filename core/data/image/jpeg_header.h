// jpeg_header: what a JPEG file says of itself, walked marker by marker before any decoder sees it.
//
// The gate of everything that comes from outside: sizes, coding, number of scans, and whether the bytes can hold the
// picture that they claim. Nothing is allocated; the walk stays inside the bytes whatever they say.
// Thread: pure.
// Reference: ITU-T T.81, annex B (markers); JEITA CP-3451 (the orientation in Exif).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pal::data {

struct ImageLimits {
  int64_t max_pixels = int64_t{1} << 27;  // 134 million: 403 MB of RGB
  int max_scans = 100;                    // of a progressive file; usual ones have ten
};

struct JpegHeader {
  int32_t width = 0, height = 0;
  int32_t components = 0;  // 1 gray, 3 color, 4 CMYK or YCCK
  int orientation = 1;     // of Exif, 1 to 8; 1: upright
  int scans = 0;           // met by the walk
  bool progressive = false;
  bool ycc =
      false;       // three components that any decoder takes for Y, Cb, Cr: numbered 1, 2, 3, no marker says otherwise
  size_t end = 0;  // the bytes behind it belong to no picture; 0: not walked to the end
};

enum class JpegWalk {
  to_first_scan,  // what a decoder of a checked file needs: near a microsecond
  whole,          // also every scan, up to the end marker: finds cut files, near ten microseconds
};

// Throws Error (data) whose sentence is the reason only, without a file's name.
JpegHeader inspect_jpeg(const uint8_t* data, size_t bytes, JpegWalk walk = JpegWalk::whole,
                        const ImageLimits& limits = {});

// Throws the same error unless height and width lie within the limits.
void check_image_size(int64_t height, int64_t width, const ImageLimits& limits);

}  // namespace pal::data
