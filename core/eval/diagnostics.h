// diagnostics: figures on the embeddings and the graph of a step, for the log, and the rule that calls them collapsed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/loss/criterion.h"

namespace pal::eval {

struct Diagnostics {
  // Over the columns of Z, of all rows of all ranks.
  double mean_abs_mean = 0;
  double mean_std = 0, min_std = 0;
  double effective_rank = 0;
  double unit_std = 0;  // mean std of the columns of the unit rows times sqrt(D): 1 on the whole sphere, 0 at a point
  // Of the ordered pairs of rows i ≠ j of the batch: their weight is above 0, below 0, or 0.
  double positive_share = 0, negative_share = 0, unknown_share = 0;
};

// Collective: two all-reduces of D numbers for the rows and two for the unit rows, and what the effective rank needs.
Diagnostics diagnose(const at::Tensor& z, const loss::Batch& batch, comm::Comm& comm);

// effective_rank: how many directions the rows of Z use; 1 means collapse.
// Collective. The participation ratio (Σλ)² / Σλ² of the eigenvalues of the global batch's covariance, in [1, D]; 0 for
// fewer than two rows, or equal ones. By the D × D or the rows × rows product, as the criteria choose
// (kernels::covariance_form_wins).
double effective_rank(const at::Tensor& z, const loss::Batch& batch, comm::Comm& comm);

// Collapse: unit_std below 0.02 (rows point the same way), or an effective rank below 1.2 of more than two columns (they
// lie on a line), in three logged steps in a row.
class CollapseWatch {
 public:
  // The warning, the first time it is due; "" otherwise.
  std::string look(const Diagnostics& diagnostics, int64_t dims);

 private:
  int in_a_row_ = 0;
  bool said_ = false;
};

}  // namespace pal::eval
