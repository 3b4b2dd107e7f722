// moments: kernels/moments.h on tensors, by device. Means, sums and packed moments are fp64.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/moments.h"

namespace pal::ops {

void column_sums(const at::Tensor& sums, const at::Tensor& z, int threads);
void centered_second_moment(const at::Tensor& packed, const at::Tensor& z, const at::Tensor& mean,
                            const kernels::MomentsOptions& options, int threads);
// The matrix A for centered_product, of z's type on the CPU, float32 elsewhere; terms (2): variance, covariance.
at::Tensor covariance_terms(const at::Tensor& terms, const at::Tensor& z, const at::Tensor& packed, int64_t n,
                            const kernels::MomentsOptions& options, int threads);
void centered_product(const at::Tensor& out, const at::Tensor& z, const at::Tensor& mean, const at::Tensor& a,
                      kernels::Into into, int threads);
// terms (2): variance, covariance.
void gram_terms(const at::Tensor& out, const at::Tensor& terms, const at::Tensor& z_all, const at::Tensor& mean,
                int64_t begin, const kernels::MomentsOptions& options, kernels::Into into, int threads);

}  // namespace pal::ops
