// spec_of: the settings of a run with these overrides of the defaults, for tests.
#pragma once

#include <string>
#include <vector>

#include "core/setup/run_spec.h"

namespace pal {

inline setup::RunSpec spec_of(const std::vector<std::string>& settings = {}) {
  return setup::make_run_spec(config::Config::defaults(settings));
}

}  // namespace pal
