// spec: which loss a run trains, and its settings, without tensors. The table of losses is core/config/losses.def.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>

#include "core/config/choices.h"
#include "core/graph/batch_graph.h"

namespace pal::loss {

enum class LossKind {
#define PAL_LOSS(name, cost, target) name,
#include "core/config/losses.def"
};
inline constexpr config::NamedChoice<LossKind> kLosses[] = {
#define PAL_LOSS(name, cost, target) {#name, LossKind::name},
#include "core/config/losses.def"
};

enum class Reduction { mean, sum };            // mean trains, sum is for theory
enum class Moments { per_view, pooled };       // VICReg: statistics of each view, or of all rows
enum class BarlowForm { graph, cross };        // BarlowTwins: over all edges of the graph, or across pairs of views
enum class SampledForm { unbiased, printed };  // sampled VIC²: see core/loss/sampled_vic2.h
enum class PairDraw {
  any,     // independent uniform pairs of rows; i = j is possible
  halves,  // i from one random half of the rows, j from the other; plus each i = j once, which keeps it unbiased
};

// The settings loss.* with what else a loss depends on. The defaults are those of core/config/keys.cpp.
struct LossSpec {
  LossKind kind = LossKind::vicreg;
  Reduction reduction = Reduction::mean;
  double invariance = 0, variance = 0, covariance = 0;  // VICReg: weights
  double epsilon = 0;                                   // VICReg
  double margin = 0;                                    // VICReg; 0: the root of twice the width
  Moments moments = Moments::per_view;                  // VICReg
  double temperature = 0;                               // SimCLR, NNCLR
  BarlowForm barlow = BarlowForm::cross;
  double lambda = 0, scale = 0;  // BarlowTwins
  int64_t queue = 0;             // NNCLR: embeddings to choose neighbors from; 0: the batch's own
  int64_t neighbors = 0;         // NNCLR
  int64_t pairs = 0;             // sampled VIC²: drawn in a step; 0: all
  PairDraw draw = PairDraw::any;
  SampledForm form = SampledForm::unbiased;
  std::optional<graph::SelfLoops> self_loops;  // graph.self_loops; none: as the loss itself has it
  uint64_t seed = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;  // of the embeddings

  graph::SelfLoops self_loops_or(graph::SelfLoops own) const { return self_loops.value_or(own); }
};

}  // namespace pal::loss
