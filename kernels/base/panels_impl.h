// panels_impl: the inner loops of panel products (panels.h), tables per type and instruction set.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

// The widest panel of any instruction set; every width divides it.
template <class C>
constexpr int64_t kMaxPanelWidth = 192 / sizeof(C);

// Products of panels of C.
template <class C>
struct PanelOps {
  int64_t width;
  // c (width, width), row stride ldc, = aᵀ b, or += aᵀ b; a and b are (depth, width).
  void (*tile)(C* c, int64_t ldc, const C* a, const C* b, int64_t depth);
  void (*tile_add)(C* c, int64_t ldc, const C* a, const C* b, int64_t depth);
};

// Packing a source of T into panels of C: (float, float), (float, double), (double, double). mean may be null.
template <class T, class C>
struct PackOps {
  // panel[k][x] = source[k * stride + x] − mean[x] for x < count, 0 beyond.
  void (*pack)(C* panel, const T* source, int64_t stride, int64_t depth, int64_t count, const double* mean);
  // panel[k][x] = source[x * stride + k] − mean[k] for x < count, 0 beyond.
  void (*turn)(C* panel, const T* source, int64_t stride, int64_t depth, int64_t count, const double* mean);
};

template <class C>
const PanelOps<C>& panel_ops(Isa isa);
template <class T, class C>
const PackOps<T, C>& pack_ops(Isa isa);

}  // namespace pal::kernels
