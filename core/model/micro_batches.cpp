#include "core/model/micro_batches.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "kernels/base/error.h"

namespace pal::model {

MicroBatches::MicroBatches(int64_t begin, int64_t end, int64_t views, int64_t count) {
  PAL_CHECK(end - begin >= count, "train.micro_batches is larger than a rank's share of the batch", count,
            "use fewer micro-batches or fewer ranks");
  for (int64_t piece = 0; piece < count; ++piece) {
    std::vector<int64_t> rows;
    for (int64_t v = 0; v < views; ++v) {
      for (int64_t p = begin + (piece - begin % count + count) % count; p < end; p += count)
        rows.push_back(v * (end - begin) + p - begin);
    }
    at::Tensor index = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
    std::copy(rows.begin(), rows.end(), index.data_ptr<int64_t>());
    rows_.push_back(index);
  }
}

at::Tensor MicroBatches::forward(const Encode& encode, const at::Tensor& images) const {
  const at::NoGradGuard no_grad;
  at::Tensor z;
  for (const at::Tensor& rows : rows_) {
    const at::Tensor piece = encode(images.index_select(0, rows.to(images.device())));
    if (!z.defined()) z = at::zeros({images.size(0), piece.size(1)}, piece.options());
    z.index_copy_(0, rows.to(z.device()), piece);
  }
  return z;
}

void MicroBatches::backward(const Encode& encode, const at::Tensor& images, const at::Tensor& dz,
                            const std::function<void()>& before_last) const {
  for (size_t k = 0; k < rows_.size(); ++k) {
    const at::Tensor z = encode(images.index_select(0, rows_[k].to(images.device())));
    if (k + 1 == rows_.size()) before_last();
    z.backward(dz.index_select(0, rows_[k].to(dz.device())));
  }
}

}  // namespace pal::model
