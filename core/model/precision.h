// precision: the number format of convolutions and matrix products, and a scope that applies it.
#pragma once

#include <cstdint>

namespace c10 {  // declared, not included: the scale model uses Precision without LibTorch
enum class DeviceType : int8_t;
enum class ScalarType : int8_t;
}  // namespace c10

namespace pal::model {

enum class Precision { full, bf16 };

// autocast: a scope in which convolutions and matrix products run in bfloat16, by LibTorch's lists of operators.
//
// Weights stay float32 and are rounded on use. bfloat16 has the range of float32, so no loss scaler is needed. Only
// forward passes belong inside; backward follows their types. Precision::full has no effect.
// Thread: affects the calling thread only.
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
  c10::ScalarType was_type_{};
};

}  // namespace pal::model
