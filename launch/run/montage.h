// montage: a picture of some samples of a data set with their labels below.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image/picture.h"

namespace pal::launch {

struct MontageOptions {
  int32_t columns = 8, rows = 6;
  int32_t cell = 128;  // pixels of a sample's square
};

// Samples spread evenly over the set, in its order; with labels, as evenly over the classes as possible.
std::vector<int64_t> montage_samples(const data::Dataset& data, int64_t count);
// A sample's own pixels, in color.
data::Picture sample_picture(const data::Dataset& data, int64_t sample);
data::Picture make_montage(const data::Dataset& data, const MontageOptions& options);

}  // namespace pal::launch
