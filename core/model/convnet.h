// convnet: a small encoder for 28×28 and 32×32 images: 3×3 convolution, batch norm, ReLU per block, then the mean over
// the plane. Every block but the first halves the plane by its stride.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/model/batch_norm.h"
#include "core/model/layers.h"

namespace pal::model {

std::shared_ptr<Backbone> make_convnet(const std::vector<int64_t>& widths, int64_t channels,
                                       const BatchNormOptions& norm);

}  // namespace pal::model
