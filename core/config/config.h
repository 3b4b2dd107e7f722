// config: the resolved settings of a run: YAML file, its `base:` files, ${ENV}, and key=value from the command line.
//
// One table of keys (keys.cpp) makes the parser, the help, the defaults and the dump. An unknown key is an error that
// names the nearest one. Everything is checked when it is loaded; getters cannot fail on a loaded config.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pal {

enum class KeyType { text, choice, integer, real, flag, text_list, integer_list };

struct KeySpec {
  std::string name;             // "section.key"
  KeyType type;
  std::string default_value;    // as YAML text; "" = not set
  std::string help;             // one sentence
  std::vector<std::string> choices = {};        // for KeyType::choice
  double min = -1e300, max = 1e300;             // for numbers
};

const std::vector<KeySpec>& config_keys();

class Config {
 public:
  // Throws Error (usage) with one sentence: file, line where known, key, value, what to do.
  static Config load(const std::string& path, const std::vector<std::string>& overrides);
  static Config defaults(const std::vector<std::string>& overrides = {});
  // A config written by dump(), as found in a run folder.
  static Config load_resolved(const std::string& path);

  bool has(const std::string& key) const;       // set by the user or by a default
  const std::string& text(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double real(const std::string& key) const;
  bool flag(const std::string& key) const;
  std::vector<std::string> text_list(const std::string& key) const;
  std::vector<int64_t> integer_list(const std::string& key) const;

  std::string origin(const std::string& key) const;   // "default", "file.yaml:12", "command line", "environment NAME"
  std::string dump() const;                            // resolved YAML by section, every key that has a value
  // Keys whose values differ, leaving out those that do not change what is computed (log.*, checkpoint.every, …).
  std::vector<std::string> differing_keys(const Config& other) const;

 private:
  struct Value {
    std::string text;
    std::vector<std::string> list;
    std::string origin;
  };
  std::map<std::string, Value> values_;
};

}  // namespace pal
