// cores: how many processor cores this process may use.
#pragma once

namespace pal::io {

int usable_cores();

}  // namespace pal::io
