// samplers: the factory, by oracle.sampler and oracle.mix.
#include "core/oracle/samplers/samplers.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/oracle/samplers/captcha.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

CaptchaOptions captcha_options(const OracleSpec& spec) {
  CaptchaOptions o{spec.members, spec.templates, spec.class_guess};
  o.center = spec.center;
  o.priors = spec.priors;
  return o;
}

std::unique_ptr<QuerySampler> make_named(const std::string& kind, const OracleSpec& spec,
                                         const std::vector<int64_t>& parents) {
  const PointOptions points{spec.members, spec.templates,
                            spec.class_guess == Guide::classifier ? ModelKind::classifier : ModelKind::centers};
  if (kind == "none") return nullptr;
  if (kind == "ssl") return make_silent_sampler();
  if (kind == "supervised") return make_random_pairs();
  if (kind == "random") return make_random_sampler(points);
  if (kind == "captcha") return make_captcha(captcha_options(spec));
  if (kind == "outliers") {
    CaptchaOptions o = captcha_options(spec);
    o.kind = QueryKind::outliers;
    o.members = spec.outliers;
    return make_captcha(o);
  }
  if (kind == "nnclr") return make_nnclr_sampler({spec.support, spec.neighbors});
  if (kind == "pruning") return make_pruning(points, {spec.clusters, spec.pruning_near_until});
  if (kind == "coarse") return make_coarse(points, parents, spec.coarse_accuracy);
  if (kind == "uncertainty") return make_uncertainty(points, spec.measure);
  if (kind == "ensemble") return make_ensemble(points, spec.heads);
  if (kind == "model_change") return make_model_change(points);
  if (kind == "gradients") return make_gradients(points);
  if (kind == "typical") return make_typical(points);
  if (kind == "k_center") return make_k_center(points);
  if (kind == "merging") return make_merging();
  PAL_CHECK(false, "name of a sampler", kind, "choose one that `pal config --keys` lists for oracle.sampler");
  return nullptr;
}

// "{sampler: captcha, share: 0.7, from: 1000}" or "captcha": its name, and a part without a sampler.
std::pair<std::string, MixPart> read_part(const std::string& text) {
  const std::string example = "write {sampler: captcha, share: 0.7, from: 1000, until: 5000}";
  MixPart part;
  std::string kind;
  try {
    const YAML::Node node = YAML::Load(text);
    if (node.IsScalar())
      kind = node.Scalar();
    else
      PAL_CHECK(node.IsMap(), "part of oracle.mix", text, example);
    for (const auto& entry : node.IsMap() ? node : YAML::Node(YAML::NodeType::Map)) {
      const std::string& key = entry.first.Scalar();
      if (key == "sampler")
        kind = entry.second.as<std::string>();
      else if (key == "share")
        part.share = entry.second.as<double>();
      else if (key == "from")
        part.from = entry.second.as<int64_t>();
      else if (key == "until")
        part.until = entry.second.as<int64_t>();
      else
        PAL_CHECK(false, "word in a part of oracle.mix", key, example);
    }
  } catch (const YAML::Exception&) {
    PAL_CHECK(false, "part of oracle.mix", text, example);
  }
  PAL_CHECK(!kind.empty() && kind != "none", "part of oracle.mix without a sampler", text, example);
  return {kind, part};
}

}  // namespace

std::unique_ptr<QuerySampler> make_query_sampler(const OracleSpec& spec, const std::vector<int64_t>& parents) {
  if (spec.sampler != "mix") return make_named(spec.sampler, spec, parents);
  std::vector<MixPart> parts;
  for (const std::string& text : spec.mix) {
    auto [kind, part] = read_part(text);
    part.sampler = make_named(kind, spec, parents);
    parts.push_back(std::move(part));
  }
  return make_mix(std::move(parts));
}

bool uses_templates(const OracleSpec& spec) {
  static const std::set<std::string> kWithout = {"none", "ssl", "supervised", "nnclr", "merging"};
  if (spec.templates != Templates::given) return false;
  if (spec.sampler != "mix") return !kWithout.count(spec.sampler);
  const std::vector<std::string>& parts = spec.mix;
  return std::any_of(parts.begin(), parts.end(),
                     [](const std::string& text) { return !kWithout.count(read_part(text).first); });
}

}  // namespace pal::oracle
