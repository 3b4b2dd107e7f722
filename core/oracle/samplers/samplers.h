// samplers: what the factory chooses from; each is a file of this folder, and an order of points or pairs (point_sampler.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/oracle/samplers/point_sampler.h"

namespace pal::oracle {

// By oracle.sampler and oracle.mix: none gives nothing. parents: the taxonomy, as Dataset::parents; empty: none.
std::unique_ptr<QuerySampler> make_query_sampler(const OracleSpec& spec, const std::vector<int64_t>& parents = {});
// Whether it starts from one labeled sample of each class (oracle.templates=given).
bool uses_templates(const OracleSpec& spec);

// ssl: nothing is asked; the views of a sample are all that is known.
std::unique_ptr<QuerySampler> make_silent_sampler();

// random: a point and one of its open classes, both drawn: what every other sampler has to beat.
std::unique_ptr<QuerySampler> make_random_sampler(const PointOptions& options);
// supervised: pairs of samples, both drawn. The passive oracle of the paper.
std::unique_ptr<QuerySampler> make_random_pairs();

// uncertainty: where the class model is least sure, then diverse.
//   entropy   of the probabilities;   margin   p of the first class less p of the second, the smallest
//   boundary  distance of the embedding to the boundary between the first and the second class, the smallest
std::unique_ptr<QuerySampler> make_uncertainty(const PointOptions& options, Uncertainty measure);

// ensemble: where `heads` class models, each fitted on members drawn with replacement, disagree: the share that does not
// vote as the majority, ties by the mean margin. Then diverse.
std::unique_ptr<QuerySampler> make_ensemble(const PointOptions& options, int64_t heads);

// model_change: the largest expected gradient of the log-loss in a linear head, Σ_c p_c ‖p − e_c‖ ‖x‖. Then diverse.
std::unique_ptr<QuerySampler> make_model_change(const PointOptions& options);
// gradients: k-means++ over the gradients g = (p − e_first) ⊗ x of the predicted class: large and diverse at once. The
// distances come from ⟨g, g'⟩ = ⟨p − e, p' − e'⟩ ⟨x, x'⟩, so that g (C · D) is never written down.
// Reference: Ash et al., "Deep batch active learning by diverse, uncertain gradient lower bounds" (ICLR 2020).
std::unique_ptr<QuerySampler> make_gradients(const PointOptions& options);

// typical: k-means with a cluster for each class known and each question asked; of the clusters without a known member, the
// largest first, the point whose 20 nearest neighbors in its cluster are nearest.
// Reference: Hacohen et al., "Active learning on a budget: opposite strategies suit high and low budgets" (ICML 2022).
std::unique_ptr<QuerySampler> make_typical(const PointOptions& options);

// k_center: always the point least similar to all that is known or chosen.
// Reference: Sener and Savarese, "Active learning for convolutional neural networks: a core-set approach" (ICLR 2018).
std::unique_ptr<QuerySampler> make_k_center(const PointOptions& options);

// pruning: k-means; the points nearest to their centers while a class has fewer than near_until known members on average,
// the farthest ones later; clusters in turn, so that a batch does not repeat itself. clusters 0: as many as classes.
// Reference: Sorscher et al., "Beyond neural scaling laws: beating power law scaling via data pruning" (NeurIPS 2022).
struct PruningOptions {
  int64_t clusters = 0;
  double near_until = 10;
};
std::unique_ptr<QuerySampler> make_pruning(const PointOptions& options, const PruningOptions& pruning);

// nnclr: drawn points, each with its nearest neighbor (cosine) in a support set; the first of the `neighbors` nearest that is
// not taken. support: so many more points, drawn; 0: the drawn points themselves, the paper's in-batch form. neighbors 0: plain
// SSL, nothing is asked.
struct NnclrSamplerOptions {
  int64_t support = 4096;
  int64_t neighbors = 1;
};
std::unique_ptr<QuerySampler> make_nnclr_sampler(const NnclrSamplerOptions& options);

// merging: the pair of components whose answer is expected to bring most positive relations, |a| · |b| · P(same), P from the
// similarity of the components' centers, a logistic curve between that of members to their own center and that of centers.
std::unique_ptr<QuerySampler> make_merging();

// coarse: "is it one of these?" about the top nodes of the taxonomy until the groups are firm, then about the classes that
// are left. Firm: a class model of the groups, fitted on every other known member, places at least `firm` of the remaining ones
// right, and every group has five. parents: as Dataset::parents, classes first.
std::unique_ptr<QuerySampler> make_coarse(const PointOptions& options, const std::vector<int64_t>& parents,
                                          double firm);

// mix: several samplers share the questions of a round. from, until: the answers known at which a part sets in and ends.
struct MixPart {
  std::shared_ptr<const QuerySampler> sampler;
  double share = 1;
  int64_t from = 0, until = -1;  // −1: never
};
std::unique_ptr<QuerySampler> make_mix(std::vector<MixPart> parts);

}  // namespace pal::oracle
