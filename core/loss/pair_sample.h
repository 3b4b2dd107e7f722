// pair_sample: pairs of rows with the probabilities they were drawn with, for core/loss/sampled_vic2.h.
#pragma once

#include <cstdint>
#include <vector>

namespace pal::loss {

// Ordered pairs of rows of the GLOBAL batch (view · samples + position), the same on every rank. A pair may come twice.
struct PairSample {
  std::vector<int64_t> i, j;
  std::vector<double> probability;  // π > 0: how often the pair is expected in the sample
};

enum class PairDraw {
  any,  // independent uniform pairs of rows, i = j among them
  halves,  // i of one random half of the rows, j of the other; and every i = j once, without which it would not be unbiased
};

// `count` pairs of `rows` rows, by (seed, step).
PairSample draw_pairs(int64_t rows, int64_t count, PairDraw draw, uint64_t seed, uint64_t step);

}  // namespace pal::loss
