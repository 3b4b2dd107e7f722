// cross_checks: conditions between several keys of a config, or between the items of a list. All of them are here.
#pragma once

#include "core/config/config.h"

namespace pal::config {

enum class Completeness { required, optional };  // whether a length of the run and a learning rate must be given

// Throws Error (usage) naming the keys, where they were set, and what to do.
void check_between_keys(const Config& config, Completeness completeness);

}  // namespace pal::config
