// embedding_plot: features in the plane of their two directions of most variance, a color per class, as SVG.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pal::launch {

// At most 3000 of the rows, spread evenly. labels empty: one color.
std::string embedding_plot(const at::Tensor& features, const std::vector<int64_t>& labels,
                           const std::vector<std::string>& classes);

}  // namespace pal::launch
