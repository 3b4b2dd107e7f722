// published_points: published measurements of scaling beside the model's predictions: pal plan --published, and a test.
#pragma once

#include <string>
#include <vector>

#include "dist/scale/scale_model.h"

namespace pal::dist {

// Networks of the points, with their classifiers, at 224 pixels.
ModelCost bottleneck_resnet(const std::vector<int>& blocks);  // {3,4,6,3}: ResNet-50; {3,4,23,3}: 101
ModelCost vgg16();

struct PublishedPoint {
  std::string what, source;
  int gpus = 1;
  double published = 0, predicted = 0;  // share of perfect scaling from one GPU
  bool fitted = false;                  // a parameter was chosen by this very point
};
std::vector<PublishedPoint> published_points();

}  // namespace pal::dist
