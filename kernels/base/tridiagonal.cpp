#include "kernels/base/tridiagonal.h"

namespace pal::kernels {

PAL_ISA_TABLE(, tridiagonal_ops, tridiagonal, TridiagonalOps)

}  // namespace pal::kernels
