// settings: read strictly, because a misspelt mode would silently test less.
#include "tests/simgpu/settings.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace simgpu {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void refuse(const char* name, const std::string& value, const char* expected) {
  throw std::invalid_argument(std::string(name) + "=" + value + " is not understood: give " + expected);
}

uint64_t number(const char* name, uint64_t otherwise) {
  const std::string value = variable(name);
  if (value.empty()) return otherwise;
  if (value.find_first_not_of("0123456789") != std::string::npos || value.size() > 18)
    refuse(name, value, "a whole number");
  return std::stoull(value);
}

bool flag(const char* name) {
  const std::string value = variable(name);
  if (!value.empty() && value != "0" && value != "1") refuse(name, value, "0 or 1");
  return value == "1";
}

}  // namespace

Settings Settings::from_environment() {
  Settings settings;
  settings.seed = number("SIMGPU_SEED", settings.seed);
  settings.limit = number("SIMGPU_LIMIT", settings.limit);
  settings.race = flag("SIMGPU_RACE") ? RaceMode::on : RaceMode::off;
  settings.stats = flag("SIMGPU_STATS");
  settings.devices = variable("SIMGPU_DEVICES").empty() || flag("SIMGPU_DEVICES") ? 1 : 0;
  settings.bus = variable("SIMGPU_BUS");
  if (settings.bus.empty())
    settings.bus = "0000:0" + std::to_string(1 + number("OMPI_COMM_WORLD_LOCAL_RANK", 0)) + ":00.0";
  const std::string streams = variable("SIMGPU_STREAMS");
  if (!streams.empty() && streams != "now" && streams != "late") refuse("SIMGPU_STREAMS", streams, "now or late");
  settings.streams = streams == "late" ? StreamMode::late : StreamMode::now;
  return settings;
}

}  // namespace simgpu
