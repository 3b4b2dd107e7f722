#include "kernels/update.h"

namespace pal::kernels {

PAL_ISA_TABLES(update_ops, update, UpdateOps)

}  // namespace pal::kernels
