// pool: the samples that a round chooses from, and the rows that the sampler needs of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/comm/comm.h"
#include "core/eval/embed.h"
#include "core/oracle/oracle.h"

namespace pal::oracle {

// `size` distinct samples drawn by (seed, Purpose::pool, round), ascending: the same on every rank. Samples of which
// nothing is known come first, except that a quarter of the pool is kept for known ones (they show where the classes
// lie). Where one kind has too few samples, the other fills the rest. `from`: the samples to draw from; empty: all.
std::vector<int64_t> draw_pool(const graph::GraphStore& store, int64_t size, uint64_t seed, int64_t round,
                               const std::vector<int64_t>& from = {}, RefusedOrder refused = RefusedOrder::drawn);

// How the rows of a pool are computed. Called only for what the sampler needs.
struct PoolSource {
  int64_t size = 0;                     // oracle.pool
  const std::vector<int64_t>& samples;  // to draw from; empty: all
  std::function<at::Tensor(const std::vector<int64_t>& samples, eval::SampleSlice slice)> embed;  // (slice, D)
  std::function<at::Tensor(const std::vector<int64_t>& samples)> inputs = {};  // (samples, values); empty: no inputs
  comm::Comm* comm = nullptr;  // of the ranks that share the rows; null: this process holds all of them
};
// Draws the samples; this process computes the rows of its own slice.
Pool make_pool(const graph::GraphStore& store, const QuerySampler& sampler, const Round& round,
               const PoolSource& source);

}  // namespace pal::oracle
