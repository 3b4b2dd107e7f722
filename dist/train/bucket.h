// bucket: the sum of one flat bucket over ranks, in full or as bfloat16 on the wire, and whether it is finite.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/comm/comm.h"
#include "core/setup/train_spec.h"

namespace pal::dist {

// What float32 gradients are on their way. float64 stays float64. bfloat16 halves the bytes: each rank's share is rounded,
// the shares are added in fp32 in the order of the ranks, and the sum is rounded again; so the result depends on W.
using setup::GradDtype;

// Collective. In place; every rank ends with the same bits. Uses no threads of its own.
void sum_bucket(const at::Tensor& bucket, comm::Comm& comm, GradDtype wire);

// No element is Inf or NaN. One pass.
bool all_finite(const at::Tensor& bucket);

}  // namespace pal::dist
