// setup: from the config to the parts of a run; the one place where keys become specs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/graph/build.h"
#include "core/model/spec.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "core/oracle/stop_rules.h"

namespace pal {

at::ScalarType scalar_type(const Config& config);
ModelSpec model_spec(const Config& config);
OptimSpec optim_spec(const Config& config);

// The samples trained on, ascending: all, or data.limit of them drawn by the seed.
std::vector<int64_t> training_subset(const Config& config, const Dataset& data);
// Labels the graph may know: −1 except for graph.labeled_fraction of the subset's labels, drawn by the seed.
std::vector<int64_t> known_labels(const Config& config, const Dataset& data, const std::vector<int64_t>& subset);
GraphKind graph_kind(const Config& config);
// How a batch's graph is made; reads graph.table and graph.targets.
GraphSpec graph_spec(const Config& config, const Dataset& data);
// By graph.deduction.
Deduction deduction(const Config& config);
// What is known before the first answer: the labels, redrawn in part (graph.label_noise), and the pairs of graph.pairs.
GraphStore make_graph_store(const Config& config, const Dataset& data, std::vector<int64_t> labels);
// Samples of a batch that are drawn from what is known (graph.edge_share of train.global_batch). 0 where that would add
// nothing: on the ssl graph, when all `trained` samples have a label, or when there are neither labels, pairs nor an oracle.
int64_t edge_samples(const Config& config, int64_t labelled, int64_t trained);

// When no more questions are asked.
StopLimits stop_limits(const Config& config);

// Steps of the run, from train.steps or train.epochs.
int64_t total_steps(const Config& config, int64_t steps_per_epoch);
// The effective peak rate (optim.base_lr × global_batch / 256, or optim.lr) with warm-up and cosine.
Schedule schedule(const Config& config, int64_t steps_per_epoch);

// Compute threads of a rank: train.threads, or as many as it has cores (World::cores).
int compute_threads(const Config& config, double cores);

}  // namespace pal
