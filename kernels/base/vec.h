// vec: primitives on one row, a table of functions per element type and instruction set.
//
// Sums are taken in fp64 in a fixed order (of the instruction set), so a result depends on nothing but its input and
// the set. n may be 0; pointers need no alignment.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

template <class T>
struct VecOps {
  double (*dot)(const T* a, const T* b, int64_t n);                                        // Σ a b
  double (*squared_distance)(const T* a, const T* b, int64_t n);                           // Σ (a − b)²
  void (*axpy)(T* y, double s, const T* x, int64_t n);                                     // y += s x
  void (*add_wide)(double* y, const T* x, int64_t n);                                      // y += x
  void (*add_squares)(double* y, const T* x, const double* m, int64_t n);                  // y += (x − m)²
  void (*dot_and_square)(double* dot, double* square, const T* a, const T* b, int64_t n);  // Σ a b, Σ b b
  void (*scale_narrow)(T* y, double s, const double* x, int64_t n);                        // y = s x
  void (*scale_narrow_add)(T* y, double s, const double* x, int64_t n);                    // y += s x
  // y = s (x − m), or y += s (x − m); Σ (x − m)². y may be null: the sum only.
  double (*difference)(T* y, double s, const T* x, const double* m, int64_t n);
  double (*difference_add)(T* y, double s, const T* x, const double* m, int64_t n);
  int64_t (*first_not_finite)(const T* x, int64_t n);  // −1: all are finite
};

struct IndexOps {
  int64_t (*first_outside)(const int32_t* x, int64_t n, int64_t low, int64_t high);  // not in [low, high); −1: none
};

template <class T>
const VecOps<T>& vec_ops(Isa isa);  // float, double
const IndexOps& index_ops(Isa isa);

}  // namespace pal::kernels
