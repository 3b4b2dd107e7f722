// exact_sums: sums of rows by group in fixed point (64-bit integers), so that they are exact: the same bits for any
// number of ranks and threads and any order of the rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"

namespace pal::oracle {

// The sums (groups, D) and how many rows each has. Of rows no longer than 1, 2^26 fit.
class ExactSums {
 public:
  // Collective. rows (n, D) float; group (n), −1: in none. times (n): how often a row counts; empty: once.
  ExactSums(const at::Tensor& rows, const std::vector<int64_t>& group, int64_t groups, comm::Comm& comm,
            const std::vector<int32_t>& times = {});

  int64_t rows(int64_t group) const { return at(group)[dims_]; }
  double sum(int64_t group, int64_t column) const { return static_cast<double>(at(group)[column]) / kUnit; }
  // The normalized sum, (D); false and nothing when the sum is 0.
  bool direction(int64_t group, float* to) const;

 private:
  static constexpr double kUnit = 0x1p36;
  const int64_t* at(int64_t group) const { return sums_.const_data_ptr<int64_t>() + group * (dims_ + 1); }

  int64_t dims_;
  at::Tensor sums_;  // (groups, D + 1): the last column counts
};

}  // namespace pal::oracle
