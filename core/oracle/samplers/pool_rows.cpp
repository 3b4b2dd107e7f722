#include "core/oracle/samplers/pool_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

template <class T>
void complete_values(std::vector<T>& values, comm::Comm& comm) {
  if (comm.size() == 1) return;
  comm.all_reduce(
      at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, c10::CppTypeToScalarType<T>::value));
}

// (n, D) → (n, kWidest): column k goes to column k mod kWidest, with a sign that depends on k alone.
at::Tensor folded(const at::Tensor& rows) {
  const int64_t dims = rows.size(1);
  if (dims <= PoolRows::kWidest) return rows;
  at::Tensor out = at::zeros({rows.size(0), PoolRows::kWidest}, at::kFloat), signs = at::empty({dims}, at::kFloat);
  for (int64_t k = 0; k < dims; ++k)
    signs.data_ptr<float>()[k] =
        Random(0, Purpose::pool, 0, static_cast<uint64_t>(k)).next_u64() >> 63 == 0 ? 1.0f : -1.0f;
  for (int64_t begin = 0; begin < dims; begin += PoolRows::kWidest) {
    const int64_t n = std::min(PoolRows::kWidest, dims - begin);
    out.narrow(1, 0, n).addcmul_(rows.narrow(1, begin, n), signs.narrow(0, begin, n));
  }
  return out;
}

}  // namespace

PoolRows::PoolRows(const Pool& pool) : samples_(pool.samples), comm_(pool.comm) {
  const at::NoGradGuard no_grad;
  if (comm_ == nullptr) alone_ = comm::make_local_comm();
  std::vector<int64_t> row_of(pool.samples.size());  // of each place in the pool
  std::iota(row_of.begin(), row_of.end(), int64_t{0});
  if (!std::is_sorted(samples_.begin(), samples_.end())) {
    std::sort(samples_.begin(), samples_.end());
    for (size_t k = 0; k < row_of.size(); ++k)
      row_of[k] = std::lower_bound(samples_.begin(), samples_.end(), pool.samples[k]) - samples_.begin();
  }
  place_.assign(pool.samples.size(), -1);
  if (!pool.embeddings.defined()) return;

  const int64_t first = pool.first, n = pool.embeddings.size(0);
  PAL_ASSERT(first >= 0 && first + n <= count() && (pool.comm != nullptr || n == count()),
             "one embedding for each sample of the pool");
  rows_here_.assign(row_of.begin() + first, row_of.begin() + first + n);
  if (!std::is_sorted(rows_here_.begin(), rows_here_.end())) {
    order_.resize(static_cast<size_t>(n));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return rows_here_[a] < rows_here_[b]; });
    std::sort(rows_here_.begin(), rows_here_.end());
  }
  for (int64_t k = 0; k < n; ++k) place_[rows_here_[k]] = k;
  const at::Tensor z = folded(at::nan_to_num(in_order(pool.embeddings), 0, 0, 0));
  here_ = (z / z.norm(2, 1, /*keepdim=*/true).clamp_min(1e-20)).contiguous();
}

at::Tensor PoolRows::in_order(const at::Tensor& of_pool) const {
  const at::Tensor rows = of_pool.to(at::kCPU, at::kFloat);
  return (order_.empty() ? rows : rows.index_select(0, at::tensor(order_, at::kLong))).contiguous();
}

at::Tensor PoolRows::gather(const std::vector<int64_t>& rows) const {
  const auto n = static_cast<int64_t>(rows.size());
  if (comm().size() == 1) return here_.index_select(0, at::tensor(rows, at::kLong));
  at::Tensor out = at::zeros({n, dims()}, at::kFloat);
  for (int64_t k = 0; k < n; ++k) {
    const int64_t from = place(rows[k]);
    if (from >= 0)
      std::copy_n(here_.const_data_ptr<float>() + from * dims(), dims(), out.data_ptr<float>() + k * dims());
  }
  complete(out);
  return out;
}

void PoolRows::complete(std::vector<double>& values) const { complete_values(values, comm()); }
void PoolRows::complete(std::vector<float>& values) const { complete_values(values, comm()); }
void PoolRows::complete(std::vector<int64_t>& values) const { complete_values(values, comm()); }

}  // namespace pal::oracle
