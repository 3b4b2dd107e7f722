// source: reads config files and the command line into a flat list of settings; keys are not checked yet.
#pragma once

#include <string>
#include <vector>

namespace pal::config {

struct Setting {
  std::string key;                 // "section.key"
  std::vector<std::string> items;  // one item of a scalar, the items of a list
  enum class Shape { null, scalar, list } shape = Shape::scalar;
  std::string origin;  // "file.yaml:12", "command line"
};

enum class Expand { everything, nothing };  // `base:` and ${ENV}

// The settings of a file after those of its `base:` files; later ones win. Throws Error (usage): the file cannot be
// read, is not YAML, repeats a key, includes itself, or names a variable that is not set.
std::vector<Setting> read_settings(const std::string& path, Expand expand);
// "section.key=value".
Setting parse_override(const std::string& text);
// The items of "[a, b]" or "a, b".
std::vector<std::string> split_list(const std::string& text, const std::string& where);
// Text from a user made fit for a one-line message: cut when long, control characters replaced.
std::string printable(const std::string& text);

}  // namespace pal::config
