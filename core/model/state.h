// state: an encoder's tensors by name: what is trained, and what a checkpoint holds.
#pragma once

#include "core/ops/named_tensors.h"

namespace pal {

class Encoder;

// The parameters, in the order of their registration; the same on every rank.
NamedTensors trainable(const Encoder& encoder);
// Parameters and buffers (running statistics), detached; they alias the encoder's own.
NamedTensors model_state(const Encoder& encoder);

}  // namespace pal
