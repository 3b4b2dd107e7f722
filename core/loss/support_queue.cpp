#include "core/loss/support_queue.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/loss/halo.h"
#include "core/loss/unit_rows.h"
#include "kernels/base/philox.h"

namespace pal::loss {

SupportQueue::SupportQueue(int64_t size, int64_t dims, at::ScalarType type, uint64_t seed)
    : next_(at::zeros({1}, at::kLong)) {
  const at::Tensor drawn = at::empty({size, dims}, at::kDouble);
  double* x = drawn.data_ptr<double>();
  for (int64_t i = 0; i < size; ++i) {
    Random random(seed, Purpose::init, /*step=*/1, static_cast<uint64_t>(i));  // weights are of step 0
    for (int64_t k = 0; k < dims; ++k) *x++ = random.normal();
  }
  rows_ = unit_rows(drawn).rows.to(type);
}

void SupportQueue::stage(const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
  staged_ = gather_rows(unit_rows(z.narrow(0, 0, batch.local_positions())).rows, positions_of(batch), comm);
}

void SupportQueue::commit() {
  if (!staged_.defined()) return;
  const int64_t size = rows_.size(0), keep = std::min(size, staged_.size(0));
  const at::Tensor fresh = staged_.narrow(0, staged_.size(0) - keep, keep);
  const int64_t next = next_.item<int64_t>(), first = std::min(keep, size - next);
  rows_.narrow(0, next, first).copy_(fresh.narrow(0, 0, first));
  rows_.narrow(0, 0, keep - first).copy_(fresh.narrow(0, first, keep - first));
  next_.fill_((next + keep) % size);
  discard();
}

}  // namespace pal::loss
