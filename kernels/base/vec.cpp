#include "kernels/base/vec.h"

namespace pal::kernels {

PAL_ISA_TABLES(vec_ops, vec, VecOps)
PAL_ISA_TABLE(, index_ops, vec_index, IndexOps)

}  // namespace pal::kernels
