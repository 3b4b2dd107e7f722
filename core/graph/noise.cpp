#include "core/graph/noise.h"

#include <algorithm>

#include "kernels/base/philox.h"

namespace pal::graph {

void flip_weights(std::vector<WeightedPair>& pairs, double share, uint64_t seed) {
  if (share <= 0) return;
  for (WeightedPair& pair : pairs) {
    const auto [low, high] = std::minmax(pair.i, pair.j);
    Random random(seed, Purpose::flip, static_cast<uint64_t>(low), static_cast<uint64_t>(high));
    if (random.next_double() < share) pair.weight = -pair.weight;
  }
}

void redraw_labels(std::vector<int64_t>& labels, double share, uint64_t seed) {
  if (share <= 0) return;
  std::vector<int64_t> classes;
  for (int64_t label : labels) {
    if (label >= 0) classes.push_back(label);
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  for (size_t s = 0; s < labels.size(); ++s) {
    if (labels[s] < 0) continue;
    Random random(seed, Purpose::flip, 0, s, 1);
    if (random.next_double() < share) labels[s] = classes[random.below(classes.size())];
  }
}

}  // namespace pal::graph
