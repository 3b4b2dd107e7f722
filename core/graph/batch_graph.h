// batch_graph: the similarity graph of one GLOBAL batch, as blocks plus a sparse rest; never dense.
//
//   G = Σ_l M_l B_l M_lᵀ + S     M_l: row → block; B_l: a weight on the diagonal (or a small symmetric table)
//
// Rows: the global batch has `samples` samples with V views each; global row = view · samples + position. The graph of
// samples is lifted to rows by G ⊗ 1_V 1_Vᵀ: two views of a sample are related as the sample is to itself.
// Every rank builds the same graph from the same plan, whatever W.
#pragma once

#include <cstdint>
#include <vector>

namespace pal {

enum class SelfLoops { off, on };

// One layer: rows with the same block id ≥ 0 are related with `weight`.
struct BlockLayer {
  std::vector<int32_t> block;   // (samples) block of each position, −1 none
  int32_t blocks = 0;
  double weight = 1.0;
};

// The sparse rest on positions of the batch: symmetric CSR, columns ascending.
struct SparseRest {
  std::vector<int64_t> offsets;   // (samples + 1), or empty: no rest
  std::vector<int32_t> columns;
  std::vector<double> weights;
};

struct BatchGraph {
  int64_t samples = 0;
  int32_t views = 2;
  std::vector<BlockLayer> layers;
  SparseRest rest;
  uint64_t version = 0;   // of the store it was built from
};

// Σ_{i≠j} |G_ij| over rows (layers of positive weight; overlap counted by its sum).
double edge_mass(const BatchGraph& graph);
// ‖G‖²_F over rows with the layers' overlap; self_loops says whether the diagonal counts.
double squared_norm(const BatchGraph& graph, SelfLoops self_loops);
// The graph as a dense (rows, rows) matrix, for tests and small theory only.
std::vector<double> dense(const BatchGraph& graph, SelfLoops self_loops);

}  // namespace pal
