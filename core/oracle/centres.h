// centres: templates that stand in the middle of what is known of their class.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/oracle/board.h"

namespace pal {

// rows (samples of the board, D): by embedding or by input. The template of every class with a known member in the pool
// becomes the one nearest (cosine) to the mean of its members there; ties by the lower sample.
void move_templates(Board& board, const at::Tensor& rows);

// A row for each sample of the pool, by ascending sample and as float.
at::Tensor by_sample(const Pool& pool, const at::Tensor& rows);

}  // namespace pal
