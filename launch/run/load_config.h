// load_config: a config as a command reads it: with a line on standard error for each key that has another name now.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.h"

namespace pal::launch {

// A process that was started as a rank prints nothing: one of several has to (print_notes).
config::Config load_config(const std::string& path, const std::vector<std::string>& overrides);
void print_notes(const config::Config& config);

}  // namespace pal::launch
