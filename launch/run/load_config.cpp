#include "launch/run/load_config.h"

#include <fmt/format.h>

#include <cstdio>

#include "dist/comm/world.h"
#include "kernels/base/printable.h"

namespace pal::launch {

config::Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  config::Config config = config::Config::load(path, overrides);
  if (!dist::started_as_rank()) print_notes(config);
  return config;
}

void print_notes(const config::Config& config) {
  for (const std::string& note : config.notes()) fmt::print(stderr, "note: {}\n", printable(note));
}

}  // namespace pal::launch
