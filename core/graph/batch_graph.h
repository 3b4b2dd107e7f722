// batch_graph: the similarity graph of one GLOBAL batch, as blocks, features and a sparse rest; never dense.
//
//   G = Σ_l M_l B_l M_lᵀ + Σ_f w_f F_f F_fᵀ + S     M_l: row → block; B_l: w·I or a small table; S: sparse, symmetric
//
// Shapes: the global batch has `samples` samples with V views each; global row = view · samples + position. The graph
//   of samples is lifted to rows by G ⊗ 1_V 1_Vᵀ: two views of a sample are related as the sample is to itself. The
//   lifted graph has a diagonal (a row with itself); SelfLoops chooses whether it counts.
// Order: every rank builds the same graph from the same batch plan, for any number of ranks.
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
  double weight = 1.0;          // without a table: B = weight · I
  std::vector<double> table{};  // (blocks × blocks), row-major, symmetric: B = weight · table

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
  std::vector<double> features;  // (samples × width), row-major
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

// The weight of a pair of positions from layers and features, without the sparse rest.
double smooth_weight(const BatchGraph& graph, int64_t p, int64_t q);

// Sums over rows. Cost: O(samples · 2^layers + nnz) for blocks, plus (blocks of tables)². With features, |G| and G⁺
// cost O(samples² · width), the other sums O(samples · width²). Implied pairs are never stored.

// (samples) Σ_j over rows j of the given part of G_ij; i is a row of the position. All its views have the same sum.
std::vector<double> degrees(const BatchGraph& graph, SelfLoops self_loops, Weights part);
// E = Σ_{i≠j} |G_ij| over rows. Overlapping layers and signs are summed before the absolute value.
double edge_mass(const BatchGraph& graph);
// ‖G‖²_F over rows.
double squared_norm(const BatchGraph& graph, SelfLoops self_loops);
// Counts of ordered pairs of rows i ≠ j with a weight above 0 and below 0; `partnered` counts the rows that have a
// weight above 0 with a row of another position.
struct PairCounts {
  double positive = 0, negative = 0, partnered = 0;
};
PairCounts count_pairs(const BatchGraph& graph);
// (samples) G_pp: the weight of a row with itself.
std::vector<double> diagonal(const BatchGraph& graph);
// True when some G_ij is below 0.
bool has_negative_weight(const BatchGraph& graph);

// The graph as a dense (rows, rows) matrix, for tests and small theory only.
std::vector<double> dense(const BatchGraph& graph, SelfLoops self_loops);
// Throws Error (data) unless sizes match, block ids are in range, tables and the rest are symmetric and finite, and the
// columns of the rest ascend.
void check(const BatchGraph& graph);

}  // namespace pal::graph
