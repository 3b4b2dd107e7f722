// staging: host memory into which a state is copied in one go, so that training may go on while the copy is written.
//
// Math: tensors are copied as they lie in memory, without a change of layout, so that the copy runs at the speed of memory.
#pragma once

#include <cstddef>
#include <vector>

#include "core/ops/named_tensors.h"

namespace pal::dist {

class Staging {
 public:
  // Reserves room for these tensors, which must keep their sizes and places.
  explicit Staging(ops::NamedTensors live);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void touch();            // makes the pages real, so that the first copy is as fast as the others
  void copy(int threads);  // live → staged
  const ops::NamedTensors& staged() const { return staged_; }  // of the same names, sizes and strides
  size_t bytes() const { return bytes_; }

 private:
  const ops::NamedTensors live_;
  ops::NamedTensors staged_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace pal::dist
