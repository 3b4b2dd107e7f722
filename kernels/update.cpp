#include "kernels/update.h"

namespace pal::kernels {

#define PAL_DECLARE_UPDATE(isa)                 \
  namespace isa {                               \
  extern const UpdateOps<float> update_float;   \
  extern const UpdateOps<double> update_double; \
  }
PAL_DECLARE_UPDATE(scalar)
PAL_DECLARE_UPDATE(avx2)
PAL_DECLARE_UPDATE(avx512)
#undef PAL_DECLARE_UPDATE

template <>
const UpdateOps<float>& update_ops(Isa isa) {
  return choose_isa(isa, scalar::update_float, avx2::update_float, avx512::update_float);
}
template <>
const UpdateOps<double>& update_ops(Isa isa) {
  return choose_isa(isa, scalar::update_double, avx2::update_double, avx512::update_double);
}

}  // namespace pal::kernels
