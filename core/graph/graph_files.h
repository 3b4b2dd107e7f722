// graph_files: reads and writes graphs, loss tables and targets.
//
//   pairs     CSV `i,j[,weight]` (default weight 1; a header line is skipped), where i and j are numbers of samples or
//             names (a whole number is always a number), or an HDF5 file with a CSR group /graph: indptr (N + 1),
//             indices (int32 or int64), data (float64), as scipy.sparse writes them
//   table     CSV of C lines of C losses
//   targets   CSV, one line of numbers per sample
// A malformed file throws Error (data) with the file, the line and the value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/build.h"
#include "core/graph/weighted_edges.h"
#include "core/io/csv.h"

namespace pal::graph {

struct PairsFile {
  int64_t samples = 0;
  std::vector<WeightedPair> pairs;
};
constexpr int64_t kAsInFile = -1;  // CSV: the largest sample + 1; HDF5: its rows
// Gives the names of the samples; called at the first name in the file. Empty: a name is an error.
using NamesOf = std::function<const io::NameIndex&()>;
PairsFile read_pairs(const std::string& path, int64_t samples, const NamesOf& names = {});
// The extension chooses the format: .h5 or .hdf5, else CSV. Each unordered pair is written once.
void write_pairs(const std::string& path, const WeightedEdges& edges);

LossTable read_loss_table(const std::string& path);
Targets read_targets(const std::string& path, int64_t samples);

}  // namespace pal::graph
