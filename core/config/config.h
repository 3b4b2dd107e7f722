// config: the resolved settings of a run: YAML file, its `base:` files, ${ENV}, and key=value from the command line.
//
// The parser, the help, the defaults and the dump all use the table of keys in keys.cpp. An unknown key is an error
// that names the nearest one. load() checks everything; getters cannot fail on a loaded config.
// Later settings win: default, base files in their order, the file itself, the command line. `null` (or nothing) as a
// value resets a key to its default: `train.epochs=null train.steps=10`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pal::config {

// lines: a text, which may hold commas, or a list of such texts.
enum class KeyType { text, choice, integer, real, flag, text_list, lines, integer_list, real_list };

// Whether a key changes what is computed. A run folder refuses a config that differs in a `result` key; the others
// (threads, logging, how often a checkpoint is written) may change when a run is resumed.
enum class KeyEffect { result, none };

inline constexpr double kNoLimit = 1e300;

struct KeySpec {
  std::string name;  // "section.key"
  KeyType type;
  std::string default_value;               // as YAML text; "" = not set
  std::string help;                        // one sentence
  std::vector<std::string> choices = {};   // for KeyType::choice
  double min = -kNoLimit, max = kNoLimit;  // for numbers, and for each number of a list
  KeyEffect effect = KeyEffect::result;
};

const std::vector<KeySpec>& config_keys();

// A key that was renamed. The old name still works, in configs, on the command line and in run folders.
struct RenamedKey {
  std::string before, now;
};
const std::vector<RenamedKey>& renamed_keys();
const KeySpec* find_key(const std::string& name);  // nullptr when there is none
// What a value must be: "an integer from 2 to 64", "vicreg or vic2".
std::string describe_allowed(const KeySpec& key);

class Config {
 public:
  // Throws Error (usage) with one sentence: file, line where known, key, value, what to do.
  static Config load(const std::string& path, const std::vector<std::string>& overrides);
  // No file; the only one that may lack both train.steps and train.epochs, or both learning rates.
  static Config defaults(const std::vector<std::string>& overrides = {});
  // A config written by dump(), as found in a run folder: no `base:`, and ${ENV} stands for itself.
  static Config load_resolved(const std::string& path);

  bool has(const std::string& key) const;                 // set by the user or by a default
  const std::string& text(const std::string& key) const;  // text and choice
  int64_t integer(const std::string& key) const;
  double real(const std::string& key) const;  // real and integer
  bool flag(const std::string& key) const;
  std::vector<std::string> text_list(const std::string& key) const;  // any list
  std::vector<int64_t> integer_list(const std::string& key) const;
  std::vector<double> real_list(const std::string& key) const;  // lists of numbers

  // The value as dump() writes it; "" when the key is not set.
  std::string formatted(const std::string& key) const;
  // "default", "file.yaml:12", "command line"; with ", environment NAME" when ${NAME} gave it.
  std::string origin(const std::string& key) const;
  std::string dump() const;  // resolved YAML by section, every key that has a value
  // Keys whose values differ, of those with KeyEffect::result, in the table's order.
  std::vector<std::string> differing_keys(const Config& other) const;
  // A sentence for each renamed key that was set by its old name; for the terminal.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Value {
    std::string text;  // canonical: equal values have equal text
    std::vector<std::string> list;
    std::string origin;
  };
  friend struct ConfigBuilder;
  const Value& value(const std::string& key) const;
  std::map<std::string, Value> values_;
  std::vector<std::string> notes_;
};

}  // namespace pal::config
