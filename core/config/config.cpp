#include "core/config/config.h"

#include <unordered_map>

#include "core/config/config_internal.h"
#include "core/config/source.h"
#include "core/config/suggest.h"
#include "kernels/base/error.h"

namespace pal::config {
namespace {

std::string section_of(const std::string& key) { return key.substr(0, key.find('.')); }

const KeySpec& known_key(const Setting& setting) {
  if (const KeySpec* key = find_key(setting.key)) return *key;
  std::vector<std::string> names;
  for (const KeySpec& key : config_keys()) {
    names.push_back(key.name);
    PAL_CHECK(setting.key != section_of(key.name), setting.origin + ": " + setting.key + " is a section, not a key", "",
              "write its keys under it, such as " + key.name);
  }
  throw Error(Exit::usage, setting.origin + ": unknown key " + printable(setting.key) + "; the nearest is " +
                               suggest(setting.key, names) + " (all of them: pal config --keys)");
}

bool is_empty_section(const Setting& setting) {
  if (setting.shape != Setting::Shape::null) return false;
  for (const KeySpec& key : config_keys()) {
    if (setting.key == section_of(key.name)) return true;
  }
  return false;
}

}  // namespace

const KeySpec* find_key(const std::string& name) {
  static const std::unordered_map<std::string, const KeySpec*> by_name = [] {
    std::unordered_map<std::string, const KeySpec*> map;
    for (const KeySpec& key : config_keys()) map.emplace(key.name, &key);
    return map;
  }();
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

// Puts settings over each other, the defaults first.
struct ConfigBuilder {
  Config config;

  ConfigBuilder() {
    for (const KeySpec& key : config_keys()) reset(key);
  }

  void reset(const KeySpec& key) {
    config.values_.erase(key.name);
    if (!key.default_value.empty()) set(key, {key.name, {key.default_value}, Setting::Shape::scalar, "default"});
  }

  void set(const KeySpec& key, const Setting& setting) {
    Config::Value value;
    value.origin = setting.origin;
    if (is_list(key.type)) {
      const bool is_scalar = setting.shape == Setting::Shape::scalar;
      const bool is_line = is_scalar && key.type == KeyType::lines && !setting.items[0].starts_with('[');
      const bool is_text = is_scalar && !is_line;  // "[1, 2]" from the command line, a lone 1 from YAML
      for (const std::string& item :
           is_text ? split_list(setting.items[0], setting.origin + ": " + key.name) : setting.items) {
        value.list.push_back(canonical_value(key, item, setting.origin));
      }
    } else {
      PAL_CHECK(setting.shape == Setting::Shape::scalar, setting.origin + ": " + key.name + " is a list", "",
                "it must be " + describe_allowed(key));
      value.text = canonical_value(key, setting.items[0], setting.origin);
    }
    config.values_[key.name] = value;
  }

  // Returns the setting under its key's current name, and adds a note if an old name was used.
  Setting renamed(Setting setting) {
    for (const RenamedKey& key : renamed_keys()) {
      if (setting.key != key.before) continue;
      config.notes_.push_back(setting.origin + ": " + key.before + " is now called " + key.now +
                              "; the old name still works");
      setting.key = key.now;
    }
    return setting;
  }

  void apply(const Setting& given) {
    if (is_empty_section(given)) return;
    const Setting setting = renamed(given);
    const KeySpec& key = known_key(setting);
    const bool empty_text =
        key.type == KeyType::text && setting.shape == Setting::Shape::scalar && setting.items[0].empty();
    if (setting.shape == Setting::Shape::null || empty_text)
      reset(key);
    else
      set(key, setting);
  }

  Config finish(const std::vector<std::string>& overrides, Completeness completeness) {
    for (const std::string& text : overrides) apply(parse_override(text));
    check_between_keys(config, completeness);
    return std::move(config);
  }
};

Config Config::load(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigBuilder builder;
  for (const Setting& setting : read_settings(path, Expand::everything)) builder.apply(setting);
  return builder.finish(overrides, Completeness::required);
}

Config Config::defaults(const std::vector<std::string>& overrides) {
  return ConfigBuilder().finish(overrides, Completeness::optional);
}

Config Config::load_resolved(const std::string& path) {
  ConfigBuilder builder;
  for (const Setting& setting : read_settings(path, Expand::nothing)) builder.apply(setting);
  return builder.finish({}, Completeness::required);
}

bool Config::has(const std::string& key) const {
  PAL_ASSERT(find_key(key) != nullptr, "no such config key: " + key);
  return values_.count(key) > 0;
}

const Config::Value& Config::value(const std::string& key) const {
  PAL_ASSERT(find_key(key) != nullptr, "no such config key: " + key);
  const auto it = values_.find(key);
  PAL_ASSERT(it != values_.end(), "config key without a value: " + key);
  return it->second;
}

const std::string& Config::text(const std::string& key) const {
  const Value& v = value(key);
  PAL_ASSERT(!is_list(find_key(key)->type), "a list read as text: " + key);
  return v.text;
}
int64_t Config::integer(const std::string& key) const { return to_integer(value(key).text); }
double Config::real(const std::string& key) const { return to_real(value(key).text); }
bool Config::flag(const std::string& key) const { return value(key).text == "true"; }
std::vector<std::string> Config::text_list(const std::string& key) const { return value(key).list; }

std::vector<int64_t> Config::integer_list(const std::string& key) const {
  std::vector<int64_t> out;
  for (const std::string& item : value(key).list) out.push_back(to_integer(item));
  return out;
}

std::vector<double> Config::real_list(const std::string& key) const {
  std::vector<double> out;
  for (const std::string& item : value(key).list) out.push_back(to_real(item));
  return out;
}

std::string Config::formatted(const std::string& key) const {
  if (!has(key)) return "";
  const Value& v = value(key);
  if (!is_list(find_key(key)->type)) return yaml_scalar(v.text);
  std::string out = "[";
  for (const std::string& item : v.list) out += (out.size() > 1 ? ", " : "") + yaml_scalar(item);
  return out + "]";
}

std::string Config::origin(const std::string& key) const { return has(key) ? value(key).origin : "not set"; }

std::string Config::dump() const {
  std::string out, section;
  for (const KeySpec& key : config_keys()) {
    if (!has(key.name)) continue;
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      out += section + ":\n";
    }
    out += "  " + key.name.substr(section.size() + 1) + ": " + formatted(key.name) + "\n";
  }
  return out;
}

std::vector<std::string> Config::differing_keys(const Config& other) const {
  std::vector<std::string> names;
  for (const KeySpec& key : config_keys()) {
    if (key.effect == KeyEffect::result && formatted(key.name) != other.formatted(key.name)) names.push_back(key.name);
  }
  return names;
}

}  // namespace pal::config
