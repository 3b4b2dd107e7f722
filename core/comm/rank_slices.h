// rank_slices: how n rows, samples or numbers are divided among the ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/error.h"

namespace pal::comm {

// Where each rank's slice of n begins: W + 1 numbers; sizes differ by at most one.
inline std::vector<int64_t> rank_slices(int64_t n, int ranks) {
  PAL_ASSERT(n >= 0 && ranks > 0, "a batch is divided among at least one rank");
  std::vector<int64_t> begin(ranks + 1);
  for (int64_t r = 0; r <= ranks; ++r) begin[r] = r * (n / ranks) + std::min<int64_t>(r, n % ranks);
  return begin;
}

}  // namespace pal::comm
