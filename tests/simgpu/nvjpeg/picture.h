// picture: the properties and pixels of a JPEG file for the stand-in of nvJPEG, by libjpeg.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simnvjpeg {

struct Header {
  int width = 0, height = 0, components = 0;
  int h = 0, v = 0;    // sampling of the first component; the others' is 1, or known is false
  bool known = false;  // one of the samplings that nvJPEG has a name for
};

// False: no JPEG file.
bool read_header(Header& header, const uint8_t* data, size_t bytes);
// All pixels as RGB, (height, width, 3). False: damaged, however little.
bool read_pixels(std::vector<uint8_t>& rgb, const uint8_t* data, size_t bytes);

}  // namespace simnvjpeg
