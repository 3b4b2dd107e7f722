// philox: counter-based random numbers (Philox4x32-10), the same on host and device.
//
// A draw is a function of (seed, purpose, step, sample, view, index) and of nothing else: never of rank, thread or
// time. So any rank can draw any sample's numbers, in any order, and a resumed run draws the same ones.
// Limits: step < 2^32, sample < 2^48, view < 2^16, 2^34 words per stream.
// Reference: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define PAL_HOST_DEVICE __host__ __device__
#else
#define PAL_HOST_DEVICE
#endif

namespace pal {

// What a stream of random numbers is for; each purpose is an independent stream.
enum class Purpose : uint32_t {
  init = 1,
  shuffle = 2,
  augment = 3,
  labels = 4,
  oracle = 5,
  pool = 6,
  noise = 7,
  dropout = 8,
  bench = 9,
  edges = 10,
  negatives = 11,
  missing = 12,
  flip = 13,
  pairs = 14,
  theory = 16
};

struct Philox4 {
  uint32_t w[4];
};

PAL_HOST_DEVICE inline Philox4 philox4x32_10(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                                             uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Random: one stream; next_*() walks it. Copyable, 40 bytes, no heap.
class Random {
 public:
  PAL_HOST_DEVICE Random(uint64_t seed, Purpose purpose, uint64_t step = 0, uint64_t sample = 0, uint32_t view = 0) {
    // The purpose is mixed into the key (splitmix64), so that no two pairs of seed and purpose share a stream.
    uint64_t k = seed + 0x9E3779B97F4A7C15ull * static_cast<uint64_t>(purpose);
    k = (k ^ (k >> 30)) * 0xBF58476D1CE4E5B9ull;
    k = (k ^ (k >> 27)) * 0x94D049BB133111EBull;
    k ^= k >> 31;
    k0_ = static_cast<uint32_t>(k);
    k1_ = static_cast<uint32_t>(k >> 32);
    c1_ = (view & 0xFFFFu) | (static_cast<uint32_t>(sample >> 32) << 16);
    c2_ = static_cast<uint32_t>(sample);
    c3_ = static_cast<uint32_t>(step);
  }

  PAL_HOST_DEVICE uint32_t next_u32() {
    if (used_ == 4) {
      buffer_ = philox4x32_10(block_++, c1_, c2_, c3_, k0_, k1_);
      used_ = 0;
    }
    return buffer_.w[used_++];
  }
  PAL_HOST_DEVICE uint64_t next_u64() {
    const uint64_t hi = next_u32();
    return (hi << 32) | next_u32();
  }
  // Uniform in [0, 1), 24 bits.
  PAL_HOST_DEVICE float next_float() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }
  // Uniform in [0, 1), 53 bits.
  PAL_HOST_DEVICE double next_double() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }
  PAL_HOST_DEVICE float uniform(float lo, float hi) { return lo + (hi - lo) * next_float(); }
  // Uniform integer in [0, n), n > 0 (multiply-shift; the bias is below 2^-32 for n < 2^32).
  PAL_HOST_DEVICE uint64_t below(uint64_t n) {
    if (n <= 0xFFFFFFFFull) return (static_cast<uint64_t>(next_u32()) * n) >> 32;
    return next_u64() % n;
  }
  // Standard normal (Box-Muller; two draws of the stream each).
  double normal() {
    const double u = 1.0 - next_double();
    const double v = next_double();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586476925 * v);
  }

 private:
  uint32_t k0_, k1_, c1_, c2_, c3_;
  uint32_t block_ = 0;
  uint32_t used_ = 4;
  Philox4 buffer_{};
};

}  // namespace pal
