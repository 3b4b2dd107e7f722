// resnet: ResNet-18, 34 and 50 with torchvision's parameter names, without the classifier.
//
// Stems: imagenet is torchvision's (7×7 stride 2, max pooling); cifar has 3×3 stride 1 and no pooling, for images near
// 32 pixels. In the bottleneck the stride is in the 3×3 convolution, as torchvision's.
// Reference: He et al., "Deep residual learning for image recognition" (2015).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/model/batch_norm.h"
#include "core/model/layers.h"
#include "core/model/spec.h"

namespace pal::model {

// depth: 18, 34 or 50.
std::shared_ptr<Backbone> make_resnet(int depth, Stem stem, int64_t channels, const BatchNormOptions& norm);

}  // namespace pal::model
