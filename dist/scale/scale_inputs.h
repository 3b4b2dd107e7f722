// scale_inputs: the inputs of the scale model from the settings of a run: the cost of the model and the step's shape.
//
// The model is built and run forward on a few images on the CPU: parameters, FLOPs and the memory that backward needs
// are measured, not written down a second time. Takes seconds for a ResNet-50.
#pragma once

#include <cstdint>
#include <vector>

#include "core/setup/run_spec.h"
#include "dist/scale/scale_model.h"

namespace pal::dist {

// Sides of the views in pixels; small is 0 without small views.
struct ViewSides {
  int64_t large = 0, small = 0;
  enum class Known { yes, assumed } known = Known::yes;
};
// data.size and augment.small_size; where data.size is 0, the images' own side. Without the data set it is assumed: 32
// for the cifar stem, else 224.
ViewSides view_sides(const setup::RunSpec& spec);

ModelCost measure_model(const setup::RunSpec& spec, const ViewSides& sides);
Workload step_workload(const setup::RunSpec& spec, const ModelCost& model);

// The forms that the loss of the config can take; the first one is what the program chooses.
std::vector<LossForm> loss_forms(const setup::RunSpec& spec, const ModelCost& model, int64_t samples);

}  // namespace pal::dist
