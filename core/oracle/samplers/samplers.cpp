#include "core/oracle/samplers/samplers.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/base/error.h"

namespace pal::oracle {

#define PAL_SAMPLER(name, start) \
  std::unique_ptr<QuerySampler> name##_sampler(const OracleSpec&, const std::vector<int64_t>& parents);
#include "core/config/samplers.def"

namespace {

enum class SamplerStart { nothing, templates };
struct SamplerEntry {
  const char* name;
  SamplerStart start;
  std::unique_ptr<QuerySampler> (*make)(const OracleSpec&, const std::vector<int64_t>& parents);
};
constexpr SamplerEntry kSamplers[] = {
#define PAL_SAMPLER(name, start) {#name, SamplerStart::start, name##_sampler},
#include "core/config/samplers.def"
};

const SamplerEntry& find_sampler(const std::string& name) {
  const auto* const entry =
      std::find_if(std::begin(kSamplers), std::end(kSamplers), [&](const SamplerEntry& e) { return name == e.name; });
  PAL_CHECK(entry != std::end(kSamplers), "there is no sampler {}", name,
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
      PAL_CHECK(node.IsMap(), "oracle.mix holds {}, which is no part of a mix", text, example);
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
        PAL_CHECK(false, "a part of oracle.mix has the unknown word {}", key, example);
    }
  } catch (const YAML::Exception&) {
    PAL_CHECK(false, "oracle.mix holds {}, which is no part of a mix", text, example);
  }
  PAL_CHECK(!kind.empty() && kind != "none", "a part of oracle.mix names no sampler: {}", text, example);
  return {kind, part};
}

}  // namespace

std::unique_ptr<QuerySampler> make_query_sampler(const OracleSpec& settings, const std::vector<int64_t>& parents) {
  OracleSpec spec = settings;
  if (spec.templates == Templates::automatic) spec.templates = Templates::given;
  const std::string& name = spec.sampler;
  if (name == "none") return nullptr;
  if (name != "mix") return find_sampler(name).make(spec, parents);
  std::vector<MixPart> parts;
  for (const std::string& text : spec.mix) {
    auto [part_name, part] = read_part(text);
    part.sampler = find_sampler(part_name).make(spec, parents);
    parts.push_back(std::move(part));
  }
  return make_mix(std::move(parts));
}

bool uses_templates(const OracleSpec& spec) {
  const std::string& name = spec.sampler;
  if (spec.templates == Templates::discover || name == "none") return false;
  const auto starts_from_templates = [](const std::string& sampler) {
    return find_sampler(sampler).start == SamplerStart::templates;
  };
  if (name != "mix") return starts_from_templates(name);
  const std::vector<std::string>& parts = spec.mix;
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& text) { return starts_from_templates(read_part(text).first); });
}

std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const SamplerEntry& entry : kSamplers) names.emplace_back(entry.name);
  return names;
}

}  // namespace pal::oracle
