#include "core/io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace pal::io {
namespace {

// tables[k][b]: the checksum of byte b followed by k zero bytes, so that eight bytes take eight independent look-ups.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
    t[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 0xFF];
  }
  return t;
}
constexpr Tables kTables = make_tables();

uint64_t little_endian_word(const uint8_t* p) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | p[i];
  return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(const void* data, size_t bytes, uint32_t crc) {
  const auto* p = static_cast<const uint8_t*>(data);
  uint64_t state = ~crc;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto state32 = static_cast<uint32_t>(state);
  for (; bytes > 0; --bytes, ++p) state32 = _mm_crc32_u8(state32, *p);
  return ~state32;
}
#endif

}  // namespace

uint32_t crc32c_portable(const void* data, size_t bytes, uint32_t crc) {
  const auto* p = static_cast<const uint8_t*>(data);
  uint32_t state = ~crc;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    const uint64_t word = little_endian_word(p) ^ state;
    state = 0;
    for (int i = 0; i < 8; ++i) state ^= kTables[7 - i][word >> (8 * i) & 0xFF];
  }
  for (; bytes > 0; --bytes, ++p) state = (state >> 8) ^ kTables[0][(state ^ *p) & 0xFF];
  return ~state;
}

uint32_t crc32c(const void* data, size_t bytes, uint32_t crc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_sse42(data, bytes, crc);
#endif
  return crc32c_portable(data, bytes, crc);
}

}  // namespace pal::io
