// precision: the number format of convolutions and matrix products: the tensors' own, or bfloat16.
#pragma once

namespace pal::model {

enum class Precision { full, bf16 };

}  // namespace pal::model
