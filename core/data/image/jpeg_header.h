// jpeg_header: checks a JPEG file marker by marker before any decoder reads it.
//
// It checks sizes, coding, number of scans, and whether so few bytes can hold the picture that the header announces. It
// allocates nothing and never reads outside the given bytes.
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
      false;  // three components that every decoder treats as Y, Cb, Cr: numbered 1, 2, 3, no marker for other colors
  size_t end = 0;  // end of the picture's bytes; 0: not walked to the end
};

enum class JpegWalk {
  to_first_scan,  // enough for a file that was checked before: about a microsecond
  whole,          // also every scan, up to the end marker: finds cut files, about ten microseconds
};

// Throws Error (data) with the reason, without the file's name.
JpegHeader inspect_jpeg(const uint8_t* data, size_t bytes, JpegWalk walk = JpegWalk::whole,
                        const ImageLimits& limits = {});

// Throws the same error unless height and width lie within the limits.
void check_image_size(int64_t height, int64_t width, const ImageLimits& limits);

}  // namespace pal::data
