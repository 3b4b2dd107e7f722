// simd: one vector type per element type, as wide as the instruction set this file is compiled for.
//
// For *_impl.cpp only, which are compiled once per instruction set: everything lives in the namespace of PAL_ISA, so
// that the linker never merges the code of two sets. The compiler's own vectors do the arithmetic (a * b + c
// fuses); only what they cannot express is written with intrinsics.
#pragma once

#include <immintrin.h>

#include <cstdint>

#ifndef PAL_ISA
#error "simd.h is for sources compiled once per instruction set"
#endif

namespace pal::kernels::PAL_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRegisters = 16;
#else
constexpr int kVectorBytes = 16, kRegisters = 16;
#endif

template <class T, int kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T>
using Vec = typename VectorOf<T, kVectorBytes>::type;
using HalfFloats = VectorOf<float, kVectorBytes / 2>::type;  // as many floats as Vec<double> has doubles
template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// Columns of a panel (panels.h): as many vectors as leave registers for 8, or 4, rows of sums.
template <class T>
constexpr int64_t kPanelWidth = (kRegisters == 32 ? 3 : 2) * kLanes<T>;

template <class T>
inline Vec<T> load(const T* p) {
  Vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store(T* p, Vec<T> v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// The first n lanes, 0 < n < kLanes; the others are 0 and their memory is not touched.
#if defined(__AVX512F__)
inline Vec<float> load_n(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
}
inline Vec<double> load_n(const double* p, int64_t n) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
}
inline void store_n(float* p, Vec<float> v, int64_t n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
}
inline void store_n(double* p, Vec<double> v, int64_t n) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
}
#else
template <class T>
inline Vec<T> load_n(const T* p, int64_t n) {
  Vec<T> v{};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
template <class T>
inline void store_n(T* p, Vec<T> v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
#endif

// Floats as doubles and back. g++ 12 takes vectors of 256 bits apart for __builtin_convertvector.
#if defined(__AVX2__) && !defined(__AVX512F__)
inline Vec<double> to_doubles(HalfFloats h) { return _mm256_cvtps_pd(h); }
inline HalfFloats to_floats(Vec<double> v) { return _mm256_cvtpd_ps(v); }
#else
inline Vec<double> to_doubles(HalfFloats h) { return __builtin_convertvector(h, Vec<double>); }
inline HalfFloats to_floats(Vec<double> v) { return __builtin_convertvector(v, HalfFloats); }
#endif

// kLanes<double> elements as doubles, and back.
inline Vec<double> load_wide(const double* p) { return load(p); }
inline Vec<double> load_wide(const float* p) {
  HalfFloats h;
  __builtin_memcpy(&h, p, sizeof h);
  return to_doubles(h);
}
inline void store_narrow(double* p, Vec<double> v) { store(p, v); }
inline void store_narrow(float* p, Vec<double> v) {
  const HalfFloats h = to_floats(v);
  __builtin_memcpy(p, &h, sizeof h);
}

// The halves of a vector as doubles: wide[0], wide[1] (a vector of doubles is its own first half).
template <class T>
constexpr int kHalves = sizeof(double) / sizeof(T);
inline void widen(Vec<double> (&wide)[1], Vec<double> v) { wide[0] = v; }
inline void widen(Vec<double> (&wide)[2], Vec<float> v) {
  HalfFloats h[2];
  __builtin_memcpy(h, &v, sizeof v);
  wide[0] = to_doubles(h[0]);
  wide[1] = to_doubles(h[1]);
}

// Sum of the lanes in their order.
inline double sum(Vec<double> v) {
  double s = 0;
  for (int i = 0; i < kLanes<double>; ++i) s += v[i];
  return s;
}

}  // namespace pal::kernels::PAL_ISA
