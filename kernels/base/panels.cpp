#include "kernels/base/panels_impl.h"

namespace pal::kernels {

#define PAL_DECLARE_PANELS(isa)                  \
  namespace isa {                                \
  extern const PanelOps<float> panel_float;      \
  extern const PanelOps<double> panel_double;    \
  }
PAL_DECLARE_PANELS(scalar)
PAL_DECLARE_PANELS(avx2)
PAL_DECLARE_PANELS(avx512)
#undef PAL_DECLARE_PANELS

template <>
const PanelOps<float>& panel_ops(Isa isa) {
  return choose_isa(isa, scalar::panel_float, avx2::panel_float, avx512::panel_float);
}
template <>
const PanelOps<double>& panel_ops(Isa isa) {
  return choose_isa(isa, scalar::panel_double, avx2::panel_double, avx512::panel_double);
}

}  // namespace pal::kernels
