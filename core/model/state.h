// state: an encoder's tensors by name: its parameters, and the content of a checkpoint.
#pragma once

#include "core/ops/named_tensors.h"

namespace pal::model {

class Encoder;

// The parameters, in the order of their registration; the same on every rank.
ops::NamedTensors trainable(const Encoder& encoder);
// Parameters and buffers (running statistics), detached; they alias the encoder's tensors.
ops::NamedTensors model_state(const Encoder& encoder);

}  // namespace pal::model
