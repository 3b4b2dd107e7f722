#include "kernels/base/panels_impl.h"

namespace pal::kernels {

PAL_ISA_TABLES(panel_ops, panel, PanelOps)
PAL_ISA_TABLE(template <>, pack_ops, pack_float_float, PackOps<float, float>)
PAL_ISA_TABLE(template <>, pack_ops, pack_float_double, PackOps<float, double>)
PAL_ISA_TABLE(template <>, pack_ops, pack_double_double, PackOps<double, double>)

}  // namespace pal::kernels
