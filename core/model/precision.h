// precision: the number format of convolutions and matrix products, and the scope that applies it.
#pragma once

#include <cstdint>

namespace c10 {  // declared, not included: the scale model uses Precision without LibTorch
enum class DeviceType : int8_t;
enum class ScalarType : int8_t;
}  // namespace c10

namespace pal::model {

enum class Precision { full, bf16 };

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
  c10::ScalarType was_type_{};
};

}  // namespace pal::model
