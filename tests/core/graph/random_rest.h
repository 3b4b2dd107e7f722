// random_rest: a sparse rest of a batch graph for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/graph/batch_graph.h"
#include "kernels/base/philox.h"

namespace pal::graph {

enum class Signs { positive, any };

// A symmetric rest on n positions, with self-loops.
inline SparseRest random_rest(int64_t n, int pairs, Signs signs, uint64_t seed) {
  Random random(seed, Purpose::bench);
  std::vector<double> s(n * n, 0);
  for (int e = 0; e < pairs; ++e) {
    const auto p = static_cast<int64_t>(random.below(n)), q = e == 0 ? p : static_cast<int64_t>(random.below(n));
    const double w = random.normal();
    s[p * n + q] = s[q * n + p] = signs == Signs::any ? w : std::abs(w);
  }
  SparseRest rest;
  rest.offsets.push_back(0);
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t q = 0; q < n; ++q) {
      if (s[p * n + q] == 0) continue;
      rest.columns.push_back(static_cast<int32_t>(q));
      rest.weights.push_back(s[p * n + q]);
    }
    rest.offsets.push_back(static_cast<int64_t>(rest.columns.size()));
  }
  return rest;
}

}  // namespace pal::graph
