#include "core/oracle/samplers/samplers.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/config/config.h"
#include "kernels/base/error.h"

namespace pal::oracle {

#define PAL_SAMPLER(name, start) \
  std::unique_ptr<QuerySampler> name##_sampler(const SamplerSettings&, const std::vector<int64_t>& parents);
#include "core/config/samplers.def"

namespace {

SamplerSettings sampler_settings(const config::Config& config) {
  SamplerSettings s;
  s.members = config.integer("oracle.members");
  s.templates = config.text("oracle.templates") == "discover" ? Templates::discover : Templates::given;
  const std::string& guess = config.text("oracle.class_guess");
  s.class_guess = guess == "none" ? Guide::none : guess == "classifier" ? Guide::classifier : Guide::embeddings;
  const std::string& center = config.text("oracle.center");
  s.center = center == "input" ? Center::input : center == "embeddings" ? Center::embeddings : Center::off;
  s.priors = config.real_list("oracle.priors");
  s.outliers = config.integer("oracle.outliers");
  const std::string& measure = config.text("oracle.measure");
  s.measure = measure == "entropy"    ? Uncertainty::entropy
              : measure == "boundary" ? Uncertainty::boundary
                                      : Uncertainty::margin;
  s.heads = config.integer("oracle.heads");
  s.clusters = config.integer("oracle.clusters");
  s.pruning_near_until = config.real("oracle.pruning_near_until");
  s.support = config.integer("oracle.support");
  s.neighbors = config.integer("oracle.neighbors");
  s.coarse_accuracy = config.real("oracle.coarse_accuracy");
  return s;
}

enum class SamplerStart { nothing, templates };
struct SamplerEntry {
  const char* name;
  SamplerStart start;
  std::unique_ptr<QuerySampler> (*make)(const SamplerSettings&, const std::vector<int64_t>& parents);
};
constexpr SamplerEntry kSamplers[] = {
#define PAL_SAMPLER(name, start) {#name, SamplerStart::start, name##_sampler},
#include "core/config/samplers.def"
};

const SamplerEntry& find_sampler(const std::string& name) {
  const auto* const entry =
      std::find_if(std::begin(kSamplers), std::end(kSamplers), [&](const SamplerEntry& e) { return name == e.name; });
  PAL_CHECK(entry != std::end(kSamplers), "name of a sampler", name,
            "choose one that `pal config --keys` lists for oracle.sampler");
  return *entry;
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
  const std::string& name = config.text("oracle.sampler");
  if (name == "none") return nullptr;
  const SamplerSettings settings = sampler_settings(config);
  if (name != "mix") return find_sampler(name).make(settings, parents);
  std::vector<MixPart> parts;
  for (const std::string& text : config.text_list("oracle.mix")) {
    auto [part_name, part] = read_part(text);
    part.sampler = find_sampler(part_name).make(settings, parents);
    parts.push_back(std::move(part));
  }
  return make_mix(std::move(parts));
}

bool uses_templates(const config::Config& config) {
  const std::string& name = config.text("oracle.sampler");
  if (config.text("oracle.templates") != "given" || name == "none") return false;
  const auto starts_from_templates = [](const std::string& sampler) {
    return find_sampler(sampler).start == SamplerStart::templates;
  };
  if (name != "mix") return starts_from_templates(name);
  const std::vector<std::string> parts = config.text_list("oracle.mix");
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& text) { return starts_from_templates(read_part(text).first); });
}

std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const SamplerEntry& entry : kSamplers) names.emplace_back(entry.name);
  return names;
}

}  // namespace pal::oracle
