// diagnostics: statistics of the embeddings and the graph of a step for the log, and the detection of collapse.
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
  double unit_std = 0;  // sqrt(D) · mean std of the columns of the unit rows: 1 if spread over the sphere, 0 at a point
  // Shares of ordered pairs of rows i ≠ j with weight above 0, below 0, and 0.
  double positive_share = 0, negative_share = 0, unknown_share = 0;
  double partnered_share = 0;  // of rows: a row of another sample is related to it, with weight above 0
};

// Collective: two all-reduces of D numbers for the rows and two for the unit rows, and what the effective rank needs.
Diagnostics diagnose(const at::Tensor& z, const loss::Batch& batch, comm::Comm& comm);

// effective_rank: the number of directions that the rows of Z use; 1 means collapse.
// Collective. The participation ratio (Σλ)² / Σλ² of the eigenvalues of the global batch's covariance, in [1, D]; 0 for
// fewer than two rows or equal rows. Computed from the D × D or the rows × rows product, whichever is cheaper
// (kernels::covariance_form_wins).
double effective_rank(const at::Tensor& z, const loss::Batch& batch, comm::Comm& comm);

// What is wrong with embeddings of `dims` columns: unit_std below 0.02 (all rows point in one direction), or with more
// than two columns an effective rank below 1.2 (all rows on a line); "" when neither holds.
std::string collapse_text(double unit_std, double effective_rank, int64_t dims);

// collapse_watch: detects collapse: collapse_text() in three consecutive logged steps.
class CollapseWatch {
 public:
  // The warning when collapse is first detected, else "".
  std::string check(const Diagnostics& diagnostics, int64_t dims);

 private:
  int in_a_row_ = 0;
  bool warned_ = false;
};

}  // namespace pal::eval
