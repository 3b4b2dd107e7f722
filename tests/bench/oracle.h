// oracle: how long a round of questions takes at ImageNet's size, and k-means and uncertainty sampling against peers.
//
// Embeddings are synthetic: unit rows around a direction for each class, a function of (sample, class) alone, made for the pool of
//   the round and sharded over MPI ranks, as in training. What is timed is everything from the store of N samples to the list of
//   questions on every rank: the draw of the pool, the class model, the choice. Embedding the pool is the network's time, not the oracle's.
//   The same questions must come out for each number of ranks.
// k-means: the same rows, clusters and iterations for faiss (spherical); both sides' centers are judged by our assignment of the rows.
// Uncertainty: margin sampling of modAL over scikit-learn's LDA on a pool that it can hold, fit and query, against ours.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dist/comm/world.h"
#include "launch/process/interleaved.h"

namespace pal::bench {

struct OracleBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/oracle_peer.py"};
  std::string json;
  int turns = 3;
  int threads = 2;  // of all ranks together
  std::vector<int> ranks = {1, 2};
  int64_t samples = 1281167, dims = 512, classes = 1000, pool = 131072, questions = 200;
  int64_t kmeans_rows = 65536;
  int64_t peer_pool = 16384;  // 0: without peers
};
int bench_oracle(const OracleBenchOptions& options, const std::string& program);
void bench_oracle_rank(const OracleBenchOptions& options, dist::World& world);  // Collective; threads: of this rank

const std::vector<std::string>& oracle_bench_samplers();
int64_t class_of_sample(int64_t sample, int64_t classes);
// (samples, D): the class's direction plus noise of the same length (uniform, a third of the cost of normals), unit rows.
at::Tensor synthetic_rows(const std::vector<int64_t>& samples, int64_t dims, int64_t classes, int threads);

}  // namespace pal::bench
