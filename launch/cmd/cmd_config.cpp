// cmd_config: `pal config CONFIG [key=value…]` prints every setting and where it is set; `--keys` prints all keys.
#include <cstdio>

#include "core/config/config.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/run/load_config.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

std::string or_dash(const std::string& text) { return text.empty() ? "(none)" : text; }

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string& line : broken_lines(text, kPageColumns - 4)) out += "    " + line + "\n";
  return out;
}

// The keys that hold `part` in their name, each with its default, allowed values and meaning.
std::string key_list(const std::string& part) {
  std::string out;
  for (const config::KeySpec& key : config::config_keys()) {
    if (key.name.find(part) == std::string::npos) continue;
    out += key.name + " = " + or_dash(key.default_value) + "\n" + indented(config::describe_allowed(key)) +
           indented(key.help);
  }
  PAL_CHECK(!out.empty(), "no key holds this text", part, "pal config --keys lists all keys");
  return out;
}

std::string settings(const config::Config& config) {
  std::vector<std::vector<std::string>> rows = {{"key", "value", "from"}};
  for (const config::KeySpec& key : config::config_keys()) {
    rows.push_back({key.name, or_dash(config.formatted(key.name)), config.origin(key.name)});
  }
  return format_table(rows);
}

}  // namespace

int cmd_config(const std::vector<std::string>& args, Context&) {
  CLI::App app("Shows every setting of a config and where it is set.", "pal config");
  std::string path;
  std::vector<std::string> overrides;
  std::string part;
  bool yaml = false;
  app.add_option("CONFIG", path, "A YAML file");
  app.add_option("key=value", overrides, "Settings that override the file");
  const auto* keys = app.add_option("--keys", part,
                                    "List all keys, or those with PART in their name, with default, "
                                    "allowed values and meaning")
                         ->expected(0, 1)
                         ->type_name("[PART]");
  app.add_flag("--yaml", yaml, "Print the resolved config as YAML, as a run folder keeps it");
  app.footer("Example:\n  pal config configs/quickstart.yaml train.seed=1");
  if (const int code = parse_arguments(app, args); code >= 0) return code;
  if (keys->count() > 0) {
    PAL_CHECK(path.empty(), "--keys takes no config", path, "give either --keys or a config");
    std::fputs(key_list(part).c_str(), stdout);
    return 0;
  }
  PAL_CHECK(!path.empty(), "no config is given", "", "give a YAML file, or --keys for the list of keys");
  const config::Config config = load_config(path, overrides);
  std::fputs((yaml ? config.dump() : settings(config)).c_str(), stdout);
  return 0;
}

}  // namespace pal::launch
