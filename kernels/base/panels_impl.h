// panels_impl: the inner loops of panel products (panels.h), a table per type and instruction set.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

constexpr int64_t kMaxPanelWidth = 32;  // of any type and instruction set

template <class C>
struct PanelOps {
  int64_t width;
  // c (width, width), row stride ldc, += aᵀ b; a and b are (depth, width).
  void (*tile)(C* c, int64_t ldc, const C* a, const C* b, int64_t depth);
  // panel[k][x] = source[k * stride + x] − mean[x], for x < count; mean may be null.
  void (*pack_float)(C* panel, const float* source, int64_t stride, int64_t depth, int64_t count, const double* mean);
  void (*pack_double)(C* panel, const double* source, int64_t stride, int64_t depth, int64_t count, const double* mean);
  // panel[k][x] = source[x * stride + k] − mean[k].
  void (*turn_float)(C* panel, const float* source, int64_t stride, int64_t depth, int64_t count, const double* mean);
  void (*turn_double)(C* panel, const double* source, int64_t stride, int64_t depth, int64_t count, const double* mean);
};
template <class C>
const PanelOps<C>& panel_ops(Isa isa);  // float, double

}  // namespace pal::kernels
