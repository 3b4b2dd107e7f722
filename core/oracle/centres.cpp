#include "core/oracle/centres.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/base/error.h"

namespace pal {

at::Tensor by_sample(const Pool& pool, const at::Tensor& rows) {
  PAL_CHECK(rows.defined() && rows.size(0) == static_cast<int64_t>(pool.samples.size()), "inputs of the pool", rows.defined() ? rows.size(0) : 0,
            "oracle.centre=input needs images of one size; use oracle.centre=embeddings");
  std::vector<int64_t> order(pool.samples.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return pool.samples[a] < pool.samples[b]; });
  return rows.to(at::kCPU, at::kFloat).index_select(0, at::tensor(order, at::kLong)).contiguous();
}

void move_templates(Board& board, const at::Tensor& rows) {
  const int64_t dims = rows.size(1);
  const float* x = rows.const_data_ptr<float>();
  const std::vector<int64_t>& row_class = board.row_class();
  std::vector<std::vector<int64_t>> members(board.classes().size());
  for (size_t row = 0; row < row_class.size(); ++row) {
    if (row_class[row] >= 0) members[row_class[row]].push_back(static_cast<int64_t>(row));
  }
  for (size_t c = 0; c < members.size(); ++c) {
    std::vector<double> sum(static_cast<size_t>(dims), 0);
    for (int64_t row : members[c]) {
      for (int64_t k = 0; k < dims; ++k) sum[k] += x[row * dims + k];
    }
    int64_t best = -1;
    double most = 0;
    for (int64_t row : members[c]) {
      double dot = 0, square = 1e-30;
      for (int64_t k = 0; k < dims; ++k) {
        dot += sum[k] * x[row * dims + k];
        square += static_cast<double>(x[row * dims + k]) * x[row * dims + k];
      }
      const double cosine = dot / std::sqrt(square);   // times the length of the sum
      if (best < 0 || cosine > most) best = row, most = cosine;
    }
    if (best >= 0) board.set_template(static_cast<int64_t>(c), board.samples()[best]);
  }
}

}  // namespace pal
