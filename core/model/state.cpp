#include "core/model/state.h"

#include "core/model/encoder.h"
#include "core/ops/named_tensors.h"

namespace pal::model {

ops::NamedTensors trainable(const Encoder& encoder) {
  ops::NamedTensors parameters;
  for (const auto& p : encoder.named_parameters()) parameters.emplace_back(p.key(), p.value());
  return parameters;
}

ops::NamedTensors model_state(const Encoder& encoder) {
  ops::NamedTensors state;
  for (const auto& p : encoder.named_parameters()) state.emplace_back(p.key(), p.value().detach());
  for (const auto& b : encoder.named_buffers()) state.emplace_back(b.key(), b.value());
  return state;
}

}  // namespace pal::model
