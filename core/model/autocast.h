// autocast: convolutions and matrix products in bfloat16 for the length of a scope, by LibTorch's own lists; weights stay
// float32 and are rounded on their way. bfloat16 has float32's range: no loss scaler is needed.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "core/model/precision.h"

namespace pal::model {

// Autocast: nothing with Precision::full. Forward passes alone belong inside; backward follows the types it finds.
// Thread: of the calling thread.
class Autocast {
 public:
  Autocast(Precision precision, c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const Precision precision_;
  const c10::DeviceType device_;
  bool was_on_ = false;
  c10::ScalarType was_type_ = c10::ScalarType::Float;
};

}  // namespace pal::model
