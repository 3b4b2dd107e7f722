// setup: from the settings of a run to its parts: samples, labels, graph, steps, learning rates.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/graph/build.h"
#include "core/graph/edge_draw.h"
#include "core/model/spec.h"
#include "core/optim/schedule.h"
#include "core/setup/run_spec.h"

namespace pal::setup {

// The model of a run. With model.backbone=none the file of features is looked at for its width.
model::ModelSpec model_spec(const RunSpec& spec);

// The samples trained on, ascending: all, or data.limit of them drawn by the seed.
std::vector<int64_t> training_subset(const RunSpec& spec, int64_t samples);
inline std::vector<int64_t> training_subset(const RunSpec& spec, const data::Dataset& data) {
  return training_subset(spec, data.size());
}
// Labels the graph may know: −1 except for graph.labeled_fraction of the subset's labels, drawn by the seed. With
// graph.groups the groups take the place of the labels; with graph.groups and an oracle no label is known.
std::vector<int64_t> known_labels(const RunSpec& spec, const data::Dataset& data, const std::vector<int64_t>& subset);
// The groups of graph.groups in a run with an oracle, drawn as labels are: −1 for none. Empty in other runs.
std::vector<int64_t> known_groups(const RunSpec& spec, const data::Dataset& data, const std::vector<int64_t>& subset);
// Whether the run can ask, known at the start: throws Error for settings whose first round would fail. Returns the
// settings with oracle.templates decided. labeled: labels that the graph knows.
oracle::OracleSpec checked_oracle(const RunSpec& spec, const data::Dataset& data, int64_t labeled);
// A sentence for a run that is too short to ask, or to use an answer; "" for the others.
std::string too_short_to_ask(const oracle::OracleSpec& spec, int64_t steps);
// A sentence for weights of VICReg with which the graph of the labels shrinks the embeddings to a line before the
// encoder separates the classes; "" for the others.
std::string collapse_warning(const RunSpec& spec);
// Throws Error (usage) when train.global_batch is larger than the samples trained on.
void check_batch(const RunSpec& spec, int64_t trained);
// How a batch's graph is made; reads graph.table and graph.targets.
graph::GraphSpec graph_spec(const graph::GraphSettings& settings, const data::Dataset& data);
// What is known before the first answer: the labels, redrawn in part (graph.label_noise), or the groups where there are
// some, and the pairs of graph.pairs.
graph::GraphStore make_graph_store(const graph::GraphSettings& settings, const data::Dataset& data,
                                   std::vector<int64_t> labels, const std::vector<int64_t>& groups = {});
// Whether the graph relates samples that are known to be alike, by labels, groups, answers or pairs.
bool relates_samples(const RunSpec& spec);
// Samples of a batch that are drawn from what is known (graph.edge_share of train.global_batch). 0 where that would add
// nothing: on the ssl graph, when there are neither labels, pairs nor an oracle, and when all `trained` samples have a
// label and half of them or more find a partner in a batch drawn at random. `draw`: the partners that are known.
int64_t edge_samples(const RunSpec& spec, int64_t labeled, int64_t trained, const graph::EdgeDraw& draw);

// Steps of the run, from train.steps or train.epochs.
int64_t total_steps(const RunSpec& spec, int64_t steps_per_epoch);
// The effective peak rate (optim.base_lr × global_batch / 256, or optim.lr) with warm-up and cosine.
optim::Schedule schedule(const RunSpec& spec, int64_t steps_per_epoch);

// Compute threads of a rank: train.threads, or as many as it has cores (World::cores).
int compute_threads(const TrainSpec& spec, double cores);

}  // namespace pal::setup
