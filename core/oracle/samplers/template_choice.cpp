#include "core/oracle/samplers/template_choice.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/oracle/samplers/exact_sums.h"
#include "kernels/base/error.h"

namespace pal::oracle {

at::Tensor inputs_here(const Candidates& board, const Pool& pool) {
  const auto n = static_cast<int64_t>(board.pool().rows_here().size());
  PAL_CHECK(pool.inputs.defined() && pool.inputs.size(0) == n, "inputs of the pool",
            pool.inputs.defined() ? pool.inputs.size(0) : 0,
            "oracle.center=input needs images of one size; use oracle.center=embeddings");
  const at::Tensor rows = board.pool().in_order(pool.inputs);
  at::Tensor longest = at::full({1}, n == 0 ? 0.0 : rows.norm(2, 1).max().item<double>(), at::kDouble);
  board.pool().comm().all_reduce(longest, comm::ReduceOp::max);
  return rows / std::max(longest.item<double>(), 1e-20);
}

void move_templates(Candidates& board, const at::Tensor& rows) {
  const PoolRows& pool = board.pool();
  const int64_t dims = rows.size(1);
  const float* x = rows.const_data_ptr<float>();
  std::vector<int64_t> class_here;
  for (int64_t row : pool.rows_here()) class_here.push_back(board.row_class()[row]);
  const auto classes = static_cast<int64_t>(board.classes().size());
  const ExactSums sums(rows, class_here, classes, pool.comm());
  std::vector<double> cosine(board.row_class().size(), 0);  // to the mean, times the length of the sum
  for (size_t k = 0; k < class_here.size(); ++k) {
    if (class_here[k] < 0) continue;
    double dot = 0, square = 1e-30;
    for (int64_t d = 0; d < dims; ++d) {
      const double v = x[static_cast<int64_t>(k) * dims + d];
      dot += sums.sum(class_here[k], d) * v;
      square += v * v;
    }
    cosine[pool.rows_here()[k]] = dot / std::sqrt(square);
  }
  pool.complete(cosine);
  std::vector<int64_t> best(static_cast<size_t>(classes), -1);
  for (size_t row = 0; row < cosine.size(); ++row) {
    const int64_t c = board.row_class()[row];
    if (c >= 0 && (best[c] < 0 || cosine[row] > cosine[best[c]])) best[c] = static_cast<int64_t>(row);
  }
  for (int64_t c = 0; c < classes; ++c) {
    if (best[c] >= 0) board.set_template(c, pool.samples()[best[c]]);
  }
}

}  // namespace pal::oracle
