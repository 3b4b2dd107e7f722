#include "kernels/base/vec.h"

namespace pal::kernels {

#define PAL_DECLARE_VEC(isa)              \
  namespace isa {                         \
  extern const VecOps<float> vec_float;   \
  extern const VecOps<double> vec_double; \
  extern const IndexOps vec_index;        \
  }
PAL_DECLARE_VEC(scalar)
PAL_DECLARE_VEC(avx2)
PAL_DECLARE_VEC(avx512)
#undef PAL_DECLARE_VEC

template <>
const VecOps<float>& vec_ops(Isa isa) {
  return choose_isa(isa, scalar::vec_float, avx2::vec_float, avx512::vec_float);
}
template <>
const VecOps<double>& vec_ops(Isa isa) {
  return choose_isa(isa, scalar::vec_double, avx2::vec_double, avx512::vec_double);
}
const IndexOps& index_ops(Isa isa) { return choose_isa(isa, scalar::vec_index, avx2::vec_index, avx512::vec_index); }

}  // namespace pal::kernels
