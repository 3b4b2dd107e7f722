// nearest_impl: the inner loops of nearest, tables per type and instruction set.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

template <class T>
struct NearestOps {
  // y = scale · x − center; returns Σ y², for n up to kPanelRun.
  double (*center)(T* y, const T* x, T scale, const T* center, int64_t n);
  // In a tile (rows, width) of products s: the first row from `row` on where 2 s − low_row < high_lane does not hold
  // for some lane; *lanes has those lanes as bits. `rows` when there is none.
  int64_t (*next)(uint64_t* lanes, const T* tile, int64_t row, int64_t rows, const T* low, const T* high);
};

template <class T>
const NearestOps<T>& nearest_ops(Isa isa);  // float, double

}  // namespace pal::kernels
