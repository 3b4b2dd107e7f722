// similarity: kernels/row_logsumexp.h and kernels/nearest.h on tensors, by device; these headers have the formulas.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/nearest.h"
#include "kernels/row_logsumexp.h"

namespace pal::ops {

// lse (n) fp64; self (n) int64, or undefined.
void row_logsumexp(const at::Tensor& lse, const at::Tensor& rows, const at::Tensor& columns, const at::Tensor& self,
                   const kernels::RowLogSumExpOptions& options, int threads);

// fp64, per row or per column. Both undefined: columns are constants.
struct LseTerms {
  at::Tensor lse, degrees;
};
void row_logsumexp_gradient(const at::Tensor& out, const at::Tensor& rows, const at::Tensor& columns,
                            const at::Tensor& self, const LseTerms& row_terms, const LseTerms& column_terms,
                            const kernels::RowLogSumExpOptions& options, int threads);

// int64. Undefined ids mean 0 … M−1; undefined samples mean the ids.
struct Support {
  at::Tensor rows, ids, samples;
};
// ids (Q, k) int64, scores (Q, k) fp64; excluded (Q, X) int64, or undefined.
void nearest(const at::Tensor& ids, const at::Tensor& scores, const at::Tensor& queries, const Support& support,
             const at::Tensor& excluded, kernels::Metric metric, int threads);

}  // namespace pal::ops
