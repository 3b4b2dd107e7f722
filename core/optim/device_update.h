// device_update: the update rules on CUDA: a launch for all parameters, over a table of runs that lies on the device.
//
// The table is uploaded when a pointer in it has changed: once, where gradients are views of buckets. On meta nothing runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/ops/named_tensors.h"
#include "kernels/update.h"

namespace pal::optim {

class DeviceUpdate {
 public:
  // first and second: the state by parameter; second may be empty.
  DeviceUpdate(const ops::NamedTensors& parameters, const ops::NamedTensors& first, const ops::NamedTensors& second);

  // By parameter, undefined where there is none: those parameters stay. eta 0: no adaptation.
  void momentum(const std::vector<at::Tensor>& gradients, const kernels::MomentumNumbers<float>& numbers, double eta);
  void adam(const std::vector<at::Tensor>& gradients, const kernels::AdamNumbers<float>& numbers);

 private:
  bool prepare(const std::vector<at::Tensor>& gradients);  // whether there is a device to launch on
  kernels::Span<const kernels::UpdateRun> runs() const;

  const ops::NamedTensors parameters_, first_, second_;
  std::vector<const void*> pointers_;  // of the gradients in the table
  int64_t count_ = 0;                  // runs
  at::Tensor table_, begin_,
      factors_;  // on the device: bytes of UpdateRun; (parameters + 1) int64; (parameters) float32
};

}  // namespace pal::optim
