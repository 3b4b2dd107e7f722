// template_choice: templates that stand in the middle of what is known of their class.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/oracle/samplers/candidates.h"

namespace pal::oracle {

// Collective. rows (rows of the pool here, D): by embedding or by input. The template of every class with a known member in the
// pool becomes the one nearest (cosine) to the mean of its members there; ties by the lower sample.
void move_templates(Candidates& board, const at::Tensor& rows);

// The pool's inputs in the order of the board's rows here, scaled so that the longest on any rank has length 1. Collective.
at::Tensor inputs_here(const Candidates& board, const Pool& pool);

}  // namespace pal::oracle
