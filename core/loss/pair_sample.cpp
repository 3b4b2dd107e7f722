#include "core/loss/pair_sample.h"

#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::loss {

PairSample draw_pairs(int64_t rows, int64_t count, PairDraw draw, uint64_t seed, uint64_t step) {
  PAL_CHECK(rows >= 2 && count >= 1, "pairs drawn from a number of rows", rows,
            "draw at least one pair of at least two rows");
  Random random(seed, Purpose::pairs, step);
  const auto n = static_cast<double>(rows), pairs = static_cast<double>(count);
  PairSample sample;
  if (draw == PairDraw::any) {
    for (int64_t k = 0; k < count; ++k) {
      sample.i.push_back(static_cast<int64_t>(random.below(rows)));
      sample.j.push_back(static_cast<int64_t>(random.below(rows)));
    }
    sample.probability.assign(count, pairs / (n * n));
    return sample;
  }
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t k = rows - 1; k > 0; --k) std::swap(order[k], order[random.below(k + 1)]);
  const int64_t half = rows / 2;
  for (int64_t k = 0; k < count; ++k) {
    sample.i.push_back(order[random.below(half)]);
    sample.j.push_back(order[half + static_cast<int64_t>(random.below(rows - half))]);
  }
  sample.probability.assign(count, pairs / (n * (n - 1)));  // halves are random: every pair i ≠ j has the same chance
  for (int64_t r = 0; r < rows; ++r) {
    sample.i.push_back(r);
    sample.j.push_back(r);
    sample.probability.push_back(1);
  }
  return sample;
}

}  // namespace pal::loss
