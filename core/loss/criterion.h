// criterion: a loss on a similarity graph as a function (z, batch, comm) → value, terms, dz.
//
// `value` is the GLOBAL loss, the same on every rank; `dz` is its gradient in this rank's rows. Parameter gradients are
// summed over ranks, not averaged, so ranks may hold different numbers of rows. Backward has no collective.
// To add a loss: one file, one line in core/config/losses.def, one test, one paragraph of `pal help losses`.
// A loss is that of the batch's graph. graph.edge_share draws known pairs more often, so these pairs weigh more, as
// intended. Batch::weights (1/π of a sample) would correct a sum over rows; a sum over pairs needs π of the pair, which
// is not a product when partners are drawn together. Sampled VIC² is unbiased for the batch by the π of its own pairs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/comm.h"
#include "core/graph/batch_graph.h"
#include "core/loss/spec.h"

namespace pal::loss {

// Ordered pairs of rows of the GLOBAL batch (view · samples + position), the same on every rank. A pair may occur
// twice.
struct PairSample {
  std::vector<int64_t> i, j;
  std::vector<double> probability;  // π > 0: expected number of times that the pair is drawn
};

// The rows that a criterion gets in a step. This rank holds positions [begin, end) of the global batch in every view;
// its local row of (view v, position p) is v · (end − begin) + (p − begin).
struct BatchRows {
  std::vector<int64_t> samples;     // (B) data-set ids of the GLOBAL batch
  int64_t begin = 0, end = 0;       // this rank's positions
  std::vector<double> weights;      // (B) 1/π of each sample, or empty (see above)
  std::vector<int64_t> rank_begin;  // (W + 1) rank r holds positions [rank_begin[r], rank_begin[r + 1])
  int32_t views = 2;
  uint64_t seed = 0, step = 0;        // of the random draws inside a criterion
  std::optional<PairSample> related;  // I and J of sampled VIC²; all pairs if not set
  std::optional<PairSample> repelled;
  at::Tensor support;           // (M, D) constant rows to choose neighbors from (NNCLR), the same on every rank
  at::Tensor anchors;           // (local rows, D) embeddings before the predictor, whose neighbors are searched
  std::vector<int64_t> labels;  // (B) of the GLOBAL batch, −1 unknown; for the supervised baselines
  int threads = 1;              // for the kernels

  int64_t local_positions() const { return end - begin; }
  int64_t local_rows() const { return local_positions() * views; }
  int64_t global_rows() const { return static_cast<int64_t>(samples.size()) * views; }
};

// The input of a criterion in one step.
struct Batch : BatchRows {
  graph::BatchGraph graph;  // of the global batch
};
// The same rows with another graph.
Batch with_graph(BatchRows rows, graph::BatchGraph graph);

using LossTerms = std::vector<std::pair<std::string, double>>;  // name, value after weighting
struct LossResult {
  double value = 0;  // the sum of its terms
  LossTerms terms;
  at::Tensor dz;  // (local rows, D), the gradient of value
};
LossResult result_of(LossTerms terms, const at::Tensor& dz);

// Collective. z (local rows, D), float32 or float64, without autograd.
using Criterion = std::function<LossResult(const at::Tensor& z, const Batch& batch, comm::Comm& comm)>;

// The same batch with a single view, for products whose columns hold all views of a position.
Batch positions_of(const Batch& batch);

// The criterion of loss.kind.
Criterion make_criterion(const LossSpec& spec);

}  // namespace pal::loss
