// criterion: a loss on a similarity graph, as a plain function (z, batch, comm) → value, terms, dz.
//
// `value` is the GLOBAL loss, the same on every rank; `dz` belongs to this rank's rows; parameter gradients are summed
// over ranks, never averaged, so slices may be uneven. No collective happens in backward.
// To add a loss: one file, one line in core/config/losses.def, one test, one paragraph of `pal help losses`.
// A loss is that of the graph of the batch as it was drawn. Where graph.edge_share brings known pairs together more often than
// chance, they weigh more: that is what it is for. 1/π of the samples is there for a criterion of single rows; a loss over
// pairs would need π of the pair, which is not the product where partners are drawn together. Sampled VIC² is unbiased for
// the batch by the π of its own pairs.
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
#include "core/loss/pair_sample.h"
#include "core/loss/spec.h"

namespace pal::loss {

// The rows that a criterion sees in a step. This rank holds positions [begin, end) of the global batch in every view; its local
// row of (view v, position p) is v · (end − begin) + (p − begin).
struct BatchRows {
  std::vector<int64_t> samples;  // (B) data-set ids of the GLOBAL batch
  int64_t begin = 0, end = 0;    // this rank's positions
  std::vector<double> weights;  // (B) 1/π: π the probability that the sample is in a batch of this step; may be empty.
                                // No criterion takes them by itself: see below
  std::vector<int64_t> rank_begin;  // (W + 1) where every rank's positions begin: rank r has [r], [r + 1)
  int32_t views = 2;
  uint64_t seed = 0, step = 0;        // of what a criterion draws itself (negatives beyond a number per row)
  std::optional<PairSample> related;  // I and J of sampled VIC²; without one: all pairs
  std::optional<PairSample> repelled;
  at::Tensor support;           // (M, D) constant rows to choose neighbors from (NNCLR), the same on every rank
  at::Tensor anchors;           // (local rows, D) whose neighbors: the embeddings before the predictor
  std::vector<int64_t> labels;  // (B) of the GLOBAL batch, −1 unknown; for the supervised baselines
  int threads = 1;              // for the kernels

  int64_t local_positions() const { return end - begin; }
  int64_t local_rows() const { return local_positions() * views; }
  int64_t global_rows() const { return static_cast<int64_t>(samples.size()) * views; }
};

// What a criterion sees of a step.
struct Batch : BatchRows {
  graph::BatchGraph graph;  // of the global batch
};
// The same rows with another graph.
Batch with_graph(BatchRows rows, graph::BatchGraph graph);

using LossTerms = std::vector<std::pair<std::string, double>>;  // named, weighted as they enter the value
struct LossResult {
  double value = 0;  // the sum of its terms
  LossTerms terms;
  at::Tensor dz;  // (local rows, D), the gradient of value
};
LossResult result_of(LossTerms terms, const at::Tensor& dz);

// Collective. z (local rows, D), float32 or float64, without autograd.
using Criterion = std::function<LossResult(const at::Tensor& z, const Batch& batch, comm::Comm& comm)>;

// The positions as rows: the same batch with a single view. For products in which all views of a position lie side by side.
Batch positions_of(const Batch& batch);

// By loss.kind.
Criterion make_criterion(const LossSpec& spec);

}  // namespace pal::loss
