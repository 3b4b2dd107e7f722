// pair_sample: pairs of rows with the probabilities they were drawn with, for core/loss/sampled_vic2.h.
#pragma once

#include <cstdint>
#include <vector>

#include "core/loss/spec.h"

namespace pal::loss {

// Ordered pairs of rows of the GLOBAL batch (view · samples + position), the same on every rank. A pair may come twice.
struct PairSample {
  std::vector<int64_t> i, j;
  std::vector<double> probability;  // π > 0: how often the pair is expected in the sample
};

// `count` pairs of `rows` rows, by (seed, step).
PairSample draw_pairs(int64_t rows, int64_t count, PairDraw draw, uint64_t seed, uint64_t step);

}  // namespace pal::loss
