// row_logsumexp_impl: the inner loops of row_logsumexp, tables per type and instruction set.
//
// A panel holds the similarities of `width` rows (PanelOps) with `count` columns as (count, width): a lane is a row.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

template <class T>
struct RowLogSumExpOps {
  // Takes a panel into the running max_i of s / τ and sum_i = Σ e^{s/τ − max_i}; begun with −∞ and 0.
  void (*absorb)(T* max, double* sum, const T* s, int64_t count, T inverse_temperature);
  // s = u_i e^{s/τ − l_i} + v_j e^{s/τ − m_j}, i the lane; v and m null: the first term only.
  void (*weigh)(T* s, int64_t count, T inverse_temperature, const T* u, const T* l, const T* v, const T* m);
  void (*exp)(T* y, const T* x, int64_t n);  // for the tests
};

template <class T>
const RowLogSumExpOps<T>& row_logsumexp_ops(Isa isa);  // float, double

}  // namespace pal::kernels
