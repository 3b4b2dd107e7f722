// samplers: the factory of samplers, and the settings that it hands to them. The table of samplers is
// core/config/samplers.def; each sampler is a file of this folder, most of them an order of points or pairs
// (point_sampler.h).
// To add a sampler: one file with its NAME_sampler(), one line in core/config/samplers.def, one test, one paragraph of
// `pal help samplers`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/oracle/samplers/point_sampler.h"

namespace pal::oracle {

enum class Uncertainty { entropy, margin, boundary };

// The settings of single samplers.
struct SamplerSettings {
  int64_t members = 10;  // samples asked against one template at a time
  Templates templates = Templates::given;
  Guide class_guess = Guide::embeddings;
  Center center = Center::off;      // captcha
  std::vector<double> priors = {};  // captcha: share of each class; empty: equal
  int64_t outliers = 10;
  Uncertainty measure = Uncertainty::margin;
  int64_t heads = 2;               // ensemble
  int64_t clusters = 0;            // pruning; 0: as many as classes
  double pruning_near_until = 10;  // pruning
  int64_t support = 4096;          // nnclr
  int64_t neighbors = 1;           // nnclr
  double coarse_accuracy = 0.9;    // coarse
};
inline PointOptions point_options(const SamplerSettings& s) {
  return {s.members, s.templates, s.class_guess == Guide::classifier ? ModelKind::classifier : ModelKind::centers};
}

// By oracle.sampler and oracle.mix; oracle.sampler=none gives nullptr. parents: the taxonomy, as Dataset::parents;
// empty: none.
std::unique_ptr<QuerySampler> make_query_sampler(const config::Config& config,
                                                 const std::vector<int64_t>& parents = {});
// Whether the run starts from one labeled sample of each class (oracle.templates=given).
bool uses_templates(const config::Config& config);
// The names of the table, in its order.
std::vector<std::string> sampler_names();

// mix: several samplers share the questions of a round. from, until: the number of answers at which a part starts and
// ends.
struct MixPart {
  std::shared_ptr<const QuerySampler> sampler;
  double share = 1;
  int64_t from = 0, until = -1;  // −1: never
};
std::unique_ptr<QuerySampler> make_mix(std::vector<MixPart> parts);

}  // namespace pal::oracle
