// moments_variance: what the CPU and the CUDA twin of moments share: one variance C_kk, with its share of the variance
// term and its place on A's diagonal, and the checks of what they are given.
#pragma once

#include <cmath>
#include <string>

#include "kernels/base/philox.h"
#include "kernels/moments.h"

namespace pal::kernels {

struct VarianceTerm {
  double value, slope;
};

PAL_HOST_DEVICE inline VarianceTerm variance_of(double c, double rows_less_one, const MomentsOptions& o) {
  if (o.variance == Variance::squared) return {(1 - c) * (1 - c), -4 * o.variance_weight * (1 - c) / rows_less_one};
  if (o.variance == Variance::norm) return {c * c, 4 * o.variance_weight * c / rows_less_one};
  const double deviation = sqrt(c + o.epsilon);
  if (!(deviation < o.gamma)) return {c == c ? 0.0 : c, 0.0};  // NaN goes through
  if (deviation == 0) return {o.gamma, 0.0};  // a constant column without ε: no direction is better than another
  return {o.gamma - deviation, -o.variance_weight / (deviation * rows_less_one)};
}

inline void check_options(const char* op, const MomentsOptions& o) {
  const std::string name(op);
  PAL_CHECK(std::isfinite(o.gamma) && o.gamma >= 0, name + ": gamma", o.gamma, "give 0 or more");
  PAL_CHECK(std::isfinite(o.epsilon) && o.epsilon >= 0, name + ": epsilon", o.epsilon, "give 0 or more");
  PAL_CHECK(std::isfinite(o.variance_weight), name + ": variance_weight", o.variance_weight,
            "it must be a finite number");
  PAL_CHECK(std::isfinite(o.covariance_weight), name + ": covariance_weight", o.covariance_weight,
            "it must be a finite number");
}

inline void check_rows(const char* op, int64_t n) {
  PAL_CHECK(n >= 2, std::string(op) + ": n", n, "a covariance needs at least two rows");
}

}  // namespace pal::kernels
