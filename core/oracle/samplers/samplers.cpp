// samplers: the factory, by oracle.sampler and oracle.mix.
#include "core/oracle/samplers/samplers.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/config/config.h"
#include "core/oracle/samplers/captcha.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

Templates templates_of(const config::Config& config) {
  return config.text("oracle.templates") == "discover" ? Templates::discover : Templates::given;
}

Guide guide_of(const config::Config& config) {
  const std::string& guide = config.text("oracle.class_guess");
  return guide == "none" ? Guide::none : guide == "classifier" ? Guide::classifier : Guide::embeddings;
}

CaptchaOptions captcha_options(const config::Config& config) {
  CaptchaOptions o{config.integer("oracle.members"), templates_of(config), guide_of(config)};
  const std::string& center = config.text("oracle.center");
  o.center = center == "input" ? Center::input : center == "embeddings" ? Center::embeddings : Center::off;
  o.priors = config.real_list("oracle.priors");
  return o;
}

Uncertainty uncertainty_of(const config::Config& config) {
  const std::string& measure = config.text("oracle.measure");
  return measure == "entropy"    ? Uncertainty::entropy
         : measure == "boundary" ? Uncertainty::boundary
                                 : Uncertainty::margin;
}

std::unique_ptr<QuerySampler> make_named(const std::string& kind, const config::Config& config,
                                         const std::vector<int64_t>& parents) {
  const PointOptions points{config.integer("oracle.members"), templates_of(config),
                            guide_of(config) == Guide::classifier ? ModelKind::classifier : ModelKind::centers};
  if (kind == "none") return nullptr;
  if (kind == "ssl") return make_silent_sampler();
  if (kind == "supervised") return make_random_pairs();
  if (kind == "random") return make_random_sampler(points);
  if (kind == "captcha") return make_captcha(captcha_options(config));
  if (kind == "outliers") {
    CaptchaOptions o = captcha_options(config);
    o.kind = QueryKind::outliers;
    o.members = config.integer("oracle.outliers");
    return make_captcha(o);
  }
  if (kind == "nnclr")
    return make_nnclr_sampler({config.integer("oracle.support"), config.integer("oracle.neighbors")});
  if (kind == "pruning")
    return make_pruning(points, {config.integer("oracle.clusters"), config.real("oracle.pruning_near_until")});
  if (kind == "coarse") return make_coarse(points, parents, config.real("oracle.coarse_accuracy"));
  if (kind == "uncertainty") return make_uncertainty(points, uncertainty_of(config));
  if (kind == "ensemble") return make_ensemble(points, config.integer("oracle.heads"));
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

std::unique_ptr<QuerySampler> make_query_sampler(const config::Config& config, const std::vector<int64_t>& parents) {
  if (config.text("oracle.sampler") != "mix") return make_named(config.text("oracle.sampler"), config, parents);
  std::vector<MixPart> parts;
  for (const std::string& text : config.text_list("oracle.mix")) {
    auto [kind, part] = read_part(text);
    part.sampler = make_named(kind, config, parents);
    parts.push_back(std::move(part));
  }
  return make_mix(std::move(parts));
}

bool uses_templates(const config::Config& config) {
  static const std::set<std::string> kWithout = {"none", "ssl", "supervised", "nnclr", "merging"};
  if (config.text("oracle.templates") != "given") return false;
  const std::string& sampler = config.text("oracle.sampler");
  if (sampler != "mix") return !kWithout.count(sampler);
  const std::vector<std::string> parts = config.text_list("oracle.mix");
  return std::any_of(parts.begin(), parts.end(),
                     [](const std::string& text) { return !kWithout.count(read_part(text).first); });
}

}  // namespace pal::oracle
