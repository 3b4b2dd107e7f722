// setup: from the config to the parts of a run; the one place where keys become specs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/graph/store.h"
#include "core/model/encoder.h"
#include "core/optim/optimizer.h"

namespace pal {

at::ScalarType scalar_type(const Config& config);
ModelSpec model_spec(const Config& config);
OptimSpec optim_spec(const Config& config);

// The samples trained on, ascending: all, or data.limit of them drawn by the seed.
std::vector<int64_t> training_subset(const Config& config, const Dataset& data);
// Labels the graph may know: −1 except for graph.labeled_fraction of the subset's labels, drawn by the seed.
std::vector<int64_t> known_labels(const Config& config, const Dataset& data, const std::vector<int64_t>& subset);
GraphKind graph_kind(const Config& config);
// Samples of a batch that are drawn from what is known (graph.edge_share of train.global_batch). 0 where that would add
// nothing: on the ssl graph, when all `trained` samples have a label, or when none has one and no oracle asks.
int64_t edge_samples(const Config& config, int64_t labelled, int64_t trained);

// Steps of the run, from train.steps or train.epochs.
int64_t total_steps(const Config& config, int64_t steps_per_epoch);
// The effective peak rate (optim.base_lr × global_batch / 256, or optim.lr) with warm-up and cosine.
Schedule schedule(const Config& config, int64_t steps_per_epoch);

// Compute threads of a rank: train.threads, or the cores this process may use divided among the host's ranks.
int compute_threads(const Config& config, int local_ranks);

}  // namespace pal
