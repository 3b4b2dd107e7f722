// hash: a running fingerprint of 64 bits in which the order of what goes in matters (splitmix64's finalizer).
#pragma once

#include <cstdint>

namespace pal {

inline uint64_t mix(uint64_t fingerprint, uint64_t value) {
  uint64_t h = fingerprint * 0x9E3779B97F4A7C15ull + value + 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  return h ^ (h >> 31);
}

}  // namespace pal
