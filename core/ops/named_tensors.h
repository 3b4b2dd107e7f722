// named_tensors: tensors with names in a fixed order: parameters, optimizer state, the contents of a file.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace pal::ops {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace pal::ops
