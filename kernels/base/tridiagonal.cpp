#include "kernels/base/tridiagonal.h"

namespace pal::kernels {

namespace scalar {
extern const TridiagonalOps tridiagonal;
}
namespace avx2 {
extern const TridiagonalOps tridiagonal;
}
namespace avx512 {
extern const TridiagonalOps tridiagonal;
}

const TridiagonalOps& tridiagonal_ops(Isa isa) {
  return choose_isa(isa, scalar::tridiagonal, avx2::tridiagonal, avx512::tridiagonal);
}

}  // namespace pal::kernels
