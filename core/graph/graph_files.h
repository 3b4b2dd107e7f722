// graph_files: reads and writes graphs, loss tables and targets.
//
//   pairs     CSV `i,j[,weight]` (default weight 1; a header line is skipped), or an HDF5 file with a CSR
//             group /graph: indptr (N + 1), indices (int32 or int64), data (float64), as scipy.sparse writes them
//   table     CSV of C lines of C losses
//   targets   CSV, one line of numbers per sample
// A malformed file throws Error (data) with the file, the line and the value.
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
// The extension chooses the format: .h5 or .hdf5, else CSV. Each unordered pair is written once.
void write_pairs(const std::string& path, const WeightedEdges& edges);

LossTable read_loss_table(const std::string& path);
Targets read_targets(const std::string& path, int64_t samples);

}  // namespace pal::graph
