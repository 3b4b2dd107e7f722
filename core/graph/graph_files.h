// graph_files: graphs, loss tables and targets as files, in and out.
//
//   pairs     CSV `i,j[,weight]` (weight 1 when left out; a first line of names is skipped), or an HDF5 file with a CSR
//             group /graph: indptr (N + 1), indices (int32 or int64), data (float64), as scipy.sparse has them
//   table     CSV of C lines of C losses
//   targets   CSV of a line of numbers per sample
// What is wrong in a file throws Error (data) with the file, the line and the value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/build.h"
#include "core/graph/weighted_edges.h"

namespace pal::graph {

struct PairsFile {
  int64_t samples = 0;
  std::vector<WeightedPair> pairs;
};
constexpr int64_t kAsInFile = -1;  // CSV: the largest sample + 1; HDF5: its rows
PairsFile read_pairs(const std::string& path, int64_t samples);
// By the path's ending: .h5 or .hdf5, else CSV, each unordered pair once.
void write_pairs(const std::string& path, const WeightedEdges& edges);

LossTable read_loss_table(const std::string& path);
Targets read_targets(const std::string& path, int64_t samples);

}  // namespace pal::graph
