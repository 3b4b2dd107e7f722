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

#include "core/oracle/oracle_spec.h"
#include "core/oracle/samplers/point_sampler.h"

namespace pal::oracle {

inline PointOptions point_options(const OracleSpec& s) {
  return {s.members, s.templates, s.class_guess == Guide::classifier ? ModelKind::classifier : ModelKind::centers};
}

// oracle.templates of a run that knows so many labels.
inline Templates decided_templates(const OracleSpec& spec, int64_t known_labels) {
  if (spec.templates != Templates::automatic) return spec.templates;
  return known_labels > 0 ? Templates::given : Templates::discover;
}

// By oracle.sampler and oracle.mix; oracle.sampler=none gives nullptr. parents: the taxonomy, as Dataset::parents;
// empty: none. Templates that are not decided are given.
std::unique_ptr<QuerySampler> make_query_sampler(const OracleSpec& spec, const std::vector<int64_t>& parents = {});
// Whether the run starts from one labeled sample of each class, where the data set has labels.
bool uses_templates(const OracleSpec& spec);
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
