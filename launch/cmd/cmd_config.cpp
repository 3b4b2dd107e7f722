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

std::string key_list() {
  std::vector<std::vector<std::string>> rows = {{"key", "default", "allowed", "meaning"}};
  for (const config::KeySpec& key : config::config_keys())
    rows.push_back({key.name, or_dash(key.default_value), config::describe_allowed(key), key.help});
  return format_table(rows);
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
  bool keys = false, yaml = false;
  app.add_option("CONFIG", path, "A YAML file");
  app.add_option("key=value", overrides, "Settings that override the file");
  app.add_flag("--keys", keys, "List all keys with default, allowed values and meaning");
  app.add_flag("--yaml", yaml, "Print the resolved config as YAML, as a run folder keeps it");
  app.footer("Example:\n  pal config configs/quickstart.yaml train.seed=1");
  if (const int code = parse_arguments(app, args); code >= 0) return code;
  if (keys) {
    PAL_CHECK(path.empty(), "--keys takes no config", path, "give either --keys or a config");
    std::fputs(key_list().c_str(), stdout);
    return 0;
  }
  PAL_CHECK(!path.empty(), "no config is given", "", "give a YAML file, or --keys for the list of keys");
  const config::Config config = load_config(path, overrides);
  std::fputs((yaml ? config.dump() : settings(config)).c_str(), stdout);
  return 0;
}

}  // namespace pal::launch
