// load_config: reads the config of a command, with a line on standard error for each key that was renamed.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.h"

namespace pal::launch {

// Prints no lines in a process that was started as a rank; rank 0 prints them later with print_notes().
config::Config load_config(const std::string& path, const std::vector<std::string>& overrides);
void print_notes(const config::Config& config);

}  // namespace pal::launch
