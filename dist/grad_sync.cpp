#include "dist/grad_sync.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

namespace pal {
namespace {

// Whether any element is Inf or NaN: all exponent bits set. One pass, no temporary.
template <class Word>
bool all_finite(const Word* bits, int64_t n, Word exponent) {
  constexpr int64_t kTile = 4096;
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t end = std::min(n, begin + kTile);
    Word bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= Word((bits[i] & exponent) == exponent);
    if (bad) return false;
  }
  return true;
}

}  // namespace

GradSync::GradSync(const NamedTensors& parameters, Comm& comm, int64_t bucket_bytes) : comm_(comm) {
  size_t first = 0;
  const size_t count = parameters.size();
  const auto parameter = [&](size_t k) { return parameters[count - 1 - k].second; };
  while (first < count) {
    // Take parameters until the bucket is full; one larger than a bucket gets a bucket of its own.
    size_t last = first;
    int64_t elements = 0;
    do {
      elements += parameter(last).numel();
      ++last;
    } while (last < count && (elements + parameter(last).numel()) * parameter(first).element_size() <= bucket_bytes &&
             parameter(last).scalar_type() == parameter(first).scalar_type());
    at::Tensor bucket = at::zeros({elements}, parameter(first).options().requires_grad(false));
    int64_t at = 0;
    for (size_t k = first; k < last; ++k) {
      at::Tensor p = parameter(k);
      // The parameter's own strides: channels-last weights keep channels-last gradients.
      p.mutable_grad() = bucket.as_strided(p.sizes(), p.strides(), at);
      at += p.numel();
    }
    buckets_.push_back(bucket);
    first = last;
  }
}

void GradSync::zero() {
  for (at::Tensor& b : buckets_) b.zero_();
}

void GradSync::sum() {
  for (at::Tensor& b : buckets_) comm_.all_reduce(b, ReduceOp::sum);
}

bool GradSync::finite() const {
  for (const at::Tensor& b : buckets_) {
    const bool ok = b.scalar_type() == at::kFloat
                        ? all_finite(static_cast<const uint32_t*>(b.data_ptr()), b.numel(), uint32_t{0x7F800000u})
                        : all_finite(static_cast<const uint64_t*>(b.data_ptr()), b.numel(), uint64_t{0x7FF0000000000000ull});
    if (!ok) return false;
  }
  return true;
}

int64_t GradSync::bytes() const {
  int64_t n = 0;
  for (const at::Tensor& b : buckets_) n += b.numel() * b.element_size();
  return n;
}

}  // namespace pal
