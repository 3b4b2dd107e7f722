// kmeans: k-means by cosine on unit rows that may lie on several ranks.
//
// Math:   center = the normalized sum of its rows; a row belongs to the center of the largest inner product, ties by the lower
//         number. Starts from twice `clusters` rows drawn by (seed, Purpose::oracle, round, sample), of which it keeps those
//         that are least alike: so fewer clusters begin with two centers. Ends after `iterations` or when no row moves.
//         A center without rows takes the row that fits its own worst.
// Order:  sums are exact (exact_sums.h): the same centers, bit for bit, for any number of ranks and threads and any order of the rows.
// Rows:   as faiss does, at most `per_cluster` rows for each cluster are looked at while the centers move, drawn by the seed; all
//         rows are assigned at the end.
// Collective.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"

namespace pal::oracle {

struct KmeansOptions {
  int64_t clusters = 1;
  int iterations = 25;
  int64_t per_cluster = 256;  // 0: all rows
  uint64_t seed = 0;
  int64_t round = 0;
};

struct Kmeans {
  at::Tensor centers;             // (clusters, D) float, unit rows; the same on every rank
  std::vector<int64_t> assigned;  // (rows) of this rank
  std::vector<float> similarity;  // (rows) to their centers
  int iterations = 0;             // done
};

// rows (n, D) float, unit length; ids (n): the rows' samples, distinct over all ranks. Fewer rows than clusters: a cluster
// for each.
Kmeans kmeans(const at::Tensor& rows, const std::vector<int64_t>& ids, const KmeansOptions& options, comm::Comm& comm);

}  // namespace pal::oracle
