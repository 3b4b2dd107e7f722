#include "core/model/layers.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

#include "kernels/base/error.h"

namespace pal::model {

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, int64_t stride, at::ScalarType dtype)
    : stride_(stride), padding_(kernel / 2) {
  weight = register_parameter("weight",
                              at::empty({out, in, kernel, kernel}, dtype, {}, {}, {}, at::MemoryFormat::ChannelsLast));
}

at::Tensor Conv2d::forward(const at::Tensor& x) {
  const bool gray = x.size(1) == 1 && weight.size(1) > 1;
  PAL_CHECK(gray || x.size(1) == weight.size(1),
            "the encoder was built for " + std::to_string(weight.size(1)) + " channels, but the images have", x.size(1),
            "give images of that many channels, or gray ones");
  return at::conv2d(x, gray ? weight.sum(1, true) : weight, {}, stride_, padding_);
}

Linear::Linear(int64_t in, int64_t out, at::ScalarType dtype) {
  weight = register_parameter("weight", at::empty({out, in}, dtype));
}

at::Tensor Linear::forward(const at::Tensor& x) { return at::linear(x, weight); }

at::Tensor global_average(const at::Tensor& x) { return x.mean({2, 3}); }

}  // namespace pal::model
