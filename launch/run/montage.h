// montage: a picture of some samples of a data set with their labels below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image/picture.h"

namespace pal::launch {

struct MontageOptions {
  int32_t columns = 8, rows = 6;
  int32_t cell = 128;  // pixels of a sample's square
};

// Samples drawn from the set, always the same ones, in its order; with labels, as evenly over the classes as possible.
std::vector<int64_t> montage_samples(const data::Dataset& data, int64_t count);
// The text below a picture in ASCII: Latin letters without accents, others by their number, "U+65E5".
std::string montage_text(const std::string& text);
// A sample's own pixels, in color.
data::Picture sample_picture(const data::Dataset& data, int64_t sample);
data::Picture make_montage(const data::Dataset& data, const MontageOptions& options);

}  // namespace pal::launch
