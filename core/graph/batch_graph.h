// batch_graph: the similarity graph of one GLOBAL batch, as blocks plus a sparse rest; never dense.
//
//   G = Σ_l M_l B_l M_lᵀ + S     M_l: row → block; B_l: a weight on the diagonal; S: sparse, symmetric
//
// Rows: the global batch has `samples` samples with V views each; global row = view · samples + position. The graph of
// samples is lifted to rows by G ⊗ 1_V 1_Vᵀ: two views of a sample are related as the sample is to itself. The diagonal
// (a row with itself) comes with the lifting: SelfLoops says whether it counts.
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

// The sparse rest on positions of the batch: symmetric CSR, columns ascending. It adds to the layers.
struct SparseRest {
  std::vector<int64_t> offsets;   // (samples + 1), or empty: no rest
  std::vector<int32_t> columns;
  std::vector<double> weights;
};

struct BatchGraph {
  int64_t samples = 0;
  int32_t views = 2;
  std::vector<BlockLayer> layers;   // at most kMaxLayers
  SparseRest rest;
  uint64_t version = 0;   // of the store it was built from
};
constexpr int kMaxLayers = 8;

// E = Σ_{i≠j} |G_ij| over rows, the layers' overlap and any signs taken into account.
double edge_mass(const BatchGraph& graph);
// ‖G‖²_F over rows, likewise.
double squared_norm(const BatchGraph& graph, SelfLoops self_loops);
// G_pp of a position: the weight of each of its rows with itself.
std::vector<double> diagonal(const BatchGraph& graph);
// Whether some weight is below 0.
bool has_negative_weight(const BatchGraph& graph);
// The graph as a dense (rows, rows) matrix, for tests and small theory only.
std::vector<double> dense(const BatchGraph& graph, SelfLoops self_loops);
// Sizes, block ids, and a rest that is in range, ascending, symmetric and finite; anything else throws Error (data).
void check(const BatchGraph& graph);

}  // namespace pal
