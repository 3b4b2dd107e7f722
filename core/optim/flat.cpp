#include "core/optim/flat.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"

namespace pal::optim {
namespace {

// Elements of a view, rounded up to whole cache lines.
int64_t room(const at::Tensor& t) {
  const int64_t line = 64 / t.element_size();
  return (t.numel() + line - 1) / line * line;
}

// The smallest bucket that is worth a message.
constexpr int64_t kSmallest = 1 << 20;

}  // namespace

FlatViews flat_zeros(const std::vector<at::Tensor>& like) {
  const at::NoGradGuard no_grad;
  int64_t size = 0;
  for (const at::Tensor& t : like) {
    PAL_ASSERT(t.is_non_overlapping_and_dense() && t.scalar_type() == like[0].scalar_type(),
               "flat tensors are dense and of one type");
    size += room(t);
  }
  FlatViews flat;
  if (like.empty()) return flat;
  flat.flat = at::zeros({size}, like[0].options().requires_grad(false));
  int64_t at = 0;
  for (const at::Tensor& t : like) {
    flat.views.push_back(flat.flat.as_strided(t.sizes(), t.strides(), at));
    at += room(t);
  }
  return flat;
}

std::vector<FlatBucket> flatten(const ops::NamedTensors& parameters, int64_t bucket_bytes) {
  const at::NoGradGuard no_grad;
  std::vector<FlatBucket> buckets;
  const auto bytes_of = [](const at::Tensor& p) { return room(p) * p.element_size(); };
  int64_t left = 0;  // bytes of the parameters that are in no bucket yet
  for (const auto& named : parameters) left += bytes_of(named.second);
  int64_t bytes = 0, most = 0;  // of the last bucket
  for (size_t k = parameters.size(); k-- > 0;) {
    const at::Tensor& p = parameters[k].second;
    const int64_t more = bytes_of(p);
    if (buckets.empty() || bytes + more > most || buckets.back().parameters[0].scalar_type() != p.scalar_type()) {
      buckets.emplace_back();
      bytes = 0;
      most = std::clamp(left / 2, std::min(kSmallest, bucket_bytes), bucket_bytes);
    }
    buckets.back().parameters.push_back(p);
    bytes += more;
    left -= more;
  }
  for (FlatBucket& bucket : buckets) {
    bucket.gradients = flat_zeros(bucket.parameters);
    bucket.values = flat_zeros(bucket.parameters);
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      bucket.values.views[k].copy_(bucket.parameters[k].detach());
      bucket.parameters[k].set_data(bucket.values.views[k]);
    }
  }
  return buckets;
}

}  // namespace pal::optim
