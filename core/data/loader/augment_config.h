// augment_config: turns the keys augment.* and data.size into the options of the augment kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/data/loader/renderer.h"
#include "kernels/augment.h"

namespace pal::data {

// One policy per view, the large ones first; a list shorter than that repeats its last number.
std::vector<kernels::ViewPolicy> view_policies(const config::Config& config);
// Views of a sample: augment.views large ones and augment.small_views small ones.
int64_t total_views(const config::Config& config);
// Everything that the loader needs to make them.
ViewSet view_set(const config::Config& config, const Dataset& data);

// Options of the views of `data`: size from data.size or the images' own height, one channel for gray
// images (the encoder repeats it three times), else three; a single mean or std serves all channels.
kernels::AugmentOptions augment_options(const config::Config& config, const Dataset& data);

}  // namespace pal::data
