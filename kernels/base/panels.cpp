#include "kernels/base/panels_impl.h"

namespace pal::kernels {

#define PAL_DECLARE_PANELS(isa)                            \
  namespace isa {                                          \
  extern const PanelOps<float> panel_float;                \
  extern const PanelOps<double> panel_double;              \
  extern const PackOps<float, float> pack_float_float;     \
  extern const PackOps<float, double> pack_float_double;   \
  extern const PackOps<double, double> pack_double_double; \
  }
PAL_DECLARE_PANELS(scalar)
PAL_DECLARE_PANELS(avx2)
PAL_DECLARE_PANELS(avx512)
#undef PAL_DECLARE_PANELS

#define PAL_CHOOSE(name) choose_isa(isa, scalar::name, avx2::name, avx512::name)
template <>
const PanelOps<float>& panel_ops(Isa isa) {
  return PAL_CHOOSE(panel_float);
}
template <>
const PanelOps<double>& panel_ops(Isa isa) {
  return PAL_CHOOSE(panel_double);
}
template <>
const PackOps<float, float>& pack_ops(Isa isa) {
  return PAL_CHOOSE(pack_float_float);
}
template <>
const PackOps<float, double>& pack_ops(Isa isa) {
  return PAL_CHOOSE(pack_float_double);
}
template <>
const PackOps<double, double>& pack_ops(Isa isa) {
  return PAL_CHOOSE(pack_double_double);
}
#undef PAL_CHOOSE

}  // namespace pal::kernels
