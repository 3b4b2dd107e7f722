#include "core/graph/weighted_edges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <sstream>

#include "kernels/base/error.h"
#include "kernels/base/hash.h"

namespace pal::graph {
namespace {

std::string edge_text(const WeightedPair& pair) {
  std::ostringstream text;
  text << "(" << pair.i << ", " << pair.j << ") with weight " << pair.weight;
  return text.str();
}

}  // namespace

WeightedEdges::WeightedEdges(int64_t samples, std::vector<WeightedPair> pairs, const std::string& source) {
  PAL_CHECK(samples >= 0 && samples <= std::numeric_limits<int32_t>::max(), "samples of a graph", samples,
            "give at most 2^31");
  for (const WeightedPair& pair : pairs) {
    PAL_DATA_CHECK(pair.i >= 0 && pair.i < samples && pair.j >= 0 && pair.j < samples,
                   source + ": pair outside the data set", edge_text(pair),
                   "samples are 0 to " + std::to_string(samples - 1));
    PAL_DATA_CHECK(std::isfinite(pair.weight), source + ": weight that is not finite at pair", edge_text(pair),
                   "give a finite one");
  }
  // Sorted by unordered pair, then by direction: duplicates of a pair become adjacent.
  std::sort(pairs.begin(), pairs.end(), [](const WeightedPair& a, const WeightedPair& b) {
    const auto [al, ah] = std::minmax(a.i, a.j);
    const auto [bl, bh] = std::minmax(b.i, b.j);
    return al != bl ? al < bl : ah != bh ? ah < bh : a.i < b.i;
  });
  size_t kept = 0;
  for (size_t k = 0; k < pairs.size(); ++k) {
    if (kept > 0) {
      const WeightedPair &before = pairs[kept - 1], &now = pairs[k];
      const bool again = before.i == now.i && before.j == now.j, back = before.i == now.j && before.j == now.i;
      PAL_DATA_CHECK(
          !(again || back) || before.weight == now.weight,
          source + (again ? ": a pair has two weights: " : ": the directions of a pair have different weights: ") +
              edge_text(before) + " and {}",
          edge_text(now), again ? "keep one of them" : "give both directions the same weight");
      if (again || back) continue;
    }
    pairs[kept++] = pairs[k];
  }
  pairs.resize(kept);
  pairs_ = static_cast<int64_t>(kept);
  offsets_.assign(samples + 1, 0);
  for (const WeightedPair& pair : pairs) {
    ++offsets_[pair.i + 1];
    if (pair.i != pair.j) ++offsets_[pair.j + 1];
  }
  for (int64_t s = 0; s < samples; ++s) offsets_[s + 1] += offsets_[s];
  columns_.resize(offsets_.back());
  weights_.resize(offsets_.back());
  std::vector<int64_t> next(offsets_.begin(), offsets_.end() - 1);
  const auto put = [&](int64_t row, int64_t column, double weight) {
    columns_[next[row]] = static_cast<int32_t>(column);
    weights_[next[row]++] = weight;
  };
  // Each row takes its columns below the diagonal first, then the others, so that columns ascend.
  for (const WeightedPair& pair : pairs) {
    const auto [low, high] = std::minmax(pair.i, pair.j);
    if (low != high) put(high, low, pair.weight);
  }
  for (const WeightedPair& pair : pairs) {
    const auto [low, high] = std::minmax(pair.i, pair.j);
    put(low, high, pair.weight);
  }
}

double WeightedEdges::weight(int64_t i, int64_t j) const {
  if (empty()) return 0;
  const auto begin = columns_.begin() + offsets_[i], end = columns_.begin() + offsets_[i + 1];
  const auto at = std::lower_bound(begin, end, static_cast<int32_t>(j));
  return at != end && *at == j ? weights_[at - columns_.begin()] : 0;
}

uint64_t WeightedEdges::fingerprint() const {
  uint64_t h = 0;
  for (int64_t o : offsets_) h = mix(h, static_cast<uint64_t>(o));
  for (size_t k = 0; k < columns_.size(); ++k)
    h = mix(mix(h, static_cast<uint64_t>(columns_[k])), std::bit_cast<uint64_t>(weights_[k]));
  return h;
}

}  // namespace pal::graph
