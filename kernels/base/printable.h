// printable: text of files (names of classes, samples, people) for a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace pal {

// Control characters and bytes that are not UTF-8 become \x1b and the like.
inline std::string printable(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
    const size_t length = byte(i) < 0x80   ? 1
                          : byte(i) < 0xC2 ? 0
                          : byte(i) < 0xE0 ? 2
                          : byte(i) < 0xF0 ? 3
                          : byte(i) < 0xF5 ? 4
                                           : 0;
    bool shown = length > 0 && i + length <= text.size() && byte(i) >= 0x20 && byte(i) != 0x7F;
    for (size_t k = 1; shown && k < length; ++k) shown = (byte(i + k) & 0xC0) == 0x80;
    if (shown && byte(i) == 0xC2 && byte(i + 1) < 0xA0) shown = false;  // control characters of Latin-1
    if (shown)
      out.append(text, i, length);
    else
      out += {'\\', 'x', "0123456789abcdef"[byte(i) >> 4], "0123456789abcdef"[byte(i) & 15]};
    i += shown ? length : 1;
  }
  return out;
}

}  // namespace pal
