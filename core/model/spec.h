// spec: what a model is, without LibTorch's modules: for code that plans or describes a model and never runs it.
#pragma once

namespace pal {

// The number format of convolutions and matrix products: the tensors' own, or bfloat16.
enum class Precision { full, bf16 };

}  // namespace pal
