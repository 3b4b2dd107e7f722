// batch_graph: the similarity graph of one GLOBAL batch, as blocks, features and a sparse rest; never dense.
//
//   G = Σ_l M_l B_l M_lᵀ + Σ_f w_f F_f F_fᵀ + S     M_l: row → block; B_l: w·I or a small table; S: sparse, symmetric
//
// Rows: the global batch has `samples` samples with V views each; global row = view · samples + position. The graph of
// samples is lifted to rows by G ⊗ 1_V 1_Vᵀ: two views of a sample are related as the sample is to itself. The diagonal
// (a row with itself) comes with the lifting: SelfLoops says whether it counts.
// Every rank builds the same graph from the same plan, whatever W.
#pragma once

#include <cstdint>
#include <vector>

namespace pal::graph {

enum class SelfLoops { off, on };
// Which part of the weights a sum takes: G, max(G, 0) or |G|.
enum class Weights { all, positive, absolute };

// One layer: rows with block ids a, b ≥ 0 are related with B_ab.
struct BlockLayer {
  std::vector<int32_t> block;  // (samples) block of each position, −1 none
  int32_t blocks = 0;
  double weight = 1.0;          // B = weight · I when there is no table …
  std::vector<double> table{};  // … else B = weight · table, (blocks × blocks), symmetric, row by row

  bool has_table() const { return !table.empty(); }
  // What the layer adds to the pair of positions (p, q).
  double between(int64_t p, int64_t q) const {
    const int32_t a = block[p], b = block[q];
    if (a < 0 || b < 0) return 0;
    if (has_table()) return weight * table[static_cast<int64_t>(a) * blocks + b];
    return a == b ? weight : 0;
  }
};

// G += weight · F Fᵀ on positions (regression: F the targets).
struct FeatureLayer {
  std::vector<double> features;  // (samples × width), row by row
  int32_t width = 0;
  double weight = 1.0;

  double between(int64_t p, int64_t q) const {
    double sum = 0;
    for (int32_t k = 0; k < width; ++k) sum += features[p * width + k] * features[q * width + k];
    return weight * sum;
  }
};

// The sparse rest on positions of the batch: symmetric CSR, columns ascending. It adds to the layers.
struct SparseRest {
  std::vector<int64_t> offsets;  // (samples + 1), or empty: no rest
  std::vector<int32_t> columns;
  std::vector<double> weights;
};

struct BatchGraph {
  int64_t samples = 0;
  int32_t views = 2;
  std::vector<BlockLayer> layers;  // at most kMaxLayers
  std::vector<FeatureLayer> features;
  SparseRest rest;
  uint64_t version = 0;  // of the store it was built from
};
constexpr int kMaxLayers = 8;

// The layers and features of a pair of positions, without the rest.
double smooth_weight(const BatchGraph& graph, int64_t p, int64_t q);

// Sums over rows. Cost: O(samples · 2^layers + nnz) for blocks, (blocks of tables)² on top; |G| and G⁺ of features take
// O(samples² · width) time, everything else of features O(samples · width²). No pair that is implied is ever stored.

// Σ_j over rows j of the given part of G_ij, for a row i of each position (all its views have the same).
std::vector<double> degrees(const BatchGraph& graph, SelfLoops self_loops, Weights part);
// E = Σ_{i≠j} |G_ij| over rows, the layers' overlap and any signs taken into account.
double edge_mass(const BatchGraph& graph);
// ‖G‖²_F over rows, likewise.
double squared_norm(const BatchGraph& graph, SelfLoops self_loops);
// How many ordered pairs of rows i ≠ j have a weight above 0, and below.
struct PairCounts {
  double positive = 0, negative = 0;
};
PairCounts count_pairs(const BatchGraph& graph);
// G_pp of a position: the weight of each of its rows with itself.
std::vector<double> diagonal(const BatchGraph& graph);
// Whether some G_ij is below 0.
bool has_negative_weight(const BatchGraph& graph);

// The graph as a dense (rows, rows) matrix, for tests and small theory only.
std::vector<double> dense(const BatchGraph& graph, SelfLoops self_loops);
// Sizes, block ids, tables and a rest that are in range, ascending, symmetric and finite; anything else throws Error (data).
void check(const BatchGraph& graph);

}  // namespace pal::graph
