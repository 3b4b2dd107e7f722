#include "core/oracle/samplers/exact_sums.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace pal::oracle {

ExactSums::ExactSums(const at::Tensor& rows, const std::vector<int64_t>& group, int64_t groups, comm::Comm& comm,
                     const std::vector<int32_t>& times)
    : dims_(rows.size(1)), sums_(at::zeros({groups, rows.size(1) + 1}, at::kLong)) {
  const int64_t n = rows.size(0);
  const float* x = rows.const_data_ptr<float>();
  int64_t* const sums = sums_.data_ptr<int64_t>();
  // A thread owns a stretch of the columns: nothing is added twice or at once.
  at::parallel_for(0, dims_, 16, [&](int64_t low, int64_t high) {
    for (int64_t i = 0; i < n; ++i) {
      if (group[i] < 0) continue;
      int64_t* to = sums + group[i] * (dims_ + 1);
      const int64_t often = times.empty() ? 1 : times[i];
      for (int64_t k = low; k < high; ++k) to[k] += often * static_cast<int64_t>(x[i * dims_ + k] * kUnit);
    }
  });
  for (int64_t i = 0; i < n; ++i) {
    if (group[i] >= 0) sums[group[i] * (dims_ + 1) + dims_] += times.empty() ? 1 : times[i];
  }
  comm.all_reduce(sums_);
}

bool ExactSums::direction(int64_t group, float* to) const {
  const int64_t* s = at(group);
  double square = 0;
  for (int64_t k = 0; k < dims_; ++k) square += static_cast<double>(s[k]) * static_cast<double>(s[k]);
  if (square == 0) return false;
  for (int64_t k = 0; k < dims_; ++k) to[k] = static_cast<float>(static_cast<double>(s[k]) / std::sqrt(square));
  return true;
}

}  // namespace pal::oracle
