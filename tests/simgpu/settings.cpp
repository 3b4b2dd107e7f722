// settings: read strictly, because a misspelled mode would silently test less.
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

// SIMGPU_BREAK of this rank; 0: never.
uint64_t broken_launch() {
  const std::string value = variable("SIMGPU_BREAK");
  const size_t colon = value.find(':');
  const bool digits = value.find_first_not_of("0123456789:") == std::string::npos && value.size() < 18;
  if (value.empty()) return 0;
  if (!digits || colon == 0 || colon + 1 == value.size()) refuse("SIMGPU_BREAK", value, "launch or launch:rank");
  if (colon != std::string::npos && std::stoull(value.substr(colon + 1)) != number("OMPI_COMM_WORLD_RANK", 0)) return 0;
  return std::stoull(value);
}

}  // namespace

Settings Settings::from_environment() {
  Settings settings;
  settings.seed = number("SIMGPU_SEED", settings.seed);
  settings.limit = number("SIMGPU_LIMIT", settings.limit);
  settings.race = flag("SIMGPU_RACE") ? RaceMode::on : RaceMode::off;
  settings.stats = flag("SIMGPU_STATS");
  settings.devices = static_cast<int>(number("SIMGPU_DEVICES", 1));
  settings.memory = number("SIMGPU_MEMORY", settings.memory);
  settings.driver = static_cast<int>(number("SIMGPU_DRIVER", static_cast<uint64_t>(settings.driver)));
  settings.break_at = broken_launch();
  settings.exclusive = variable("SIMGPU_EXCLUSIVE");
  settings.bus = variable("SIMGPU_BUS");
  if (settings.bus.empty())
    settings.bus = "0000:0" + std::to_string(1 + number("OMPI_COMM_WORLD_LOCAL_RANK", 0)) + ":00.0";
  const std::string streams = variable("SIMGPU_STREAMS");
  if (!streams.empty() && streams != "now" && streams != "late") refuse("SIMGPU_STREAMS", streams, "now or late");
  settings.streams = streams == "late" ? StreamMode::late : StreamMode::now;
  return settings;
}

}  // namespace simgpu
