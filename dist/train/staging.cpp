#include "dist/train/staging.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

constexpr size_t kAlign = 64, kPage = 4096;
constexpr size_t kPiece = 8 << 20;  // large enough for memcpy to go round the cache

size_t room(const at::Tensor& t) { return (t.nbytes() + kAlign - 1) / kAlign * kAlign; }

}  // namespace

Staging::Staging(ops::NamedTensors live) : live_(std::move(live)) {
  for (const auto& named : live_) {
    PAL_ASSERT(named.second.is_non_overlapping_and_dense(), "a state's tensors are dense");
    bytes_ += room(named.second);
  }
  if (bytes_ == 0) return;
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  PAL_CHECK(memory_ != MAP_FAILED, "no memory for a checkpoint's copy of " + std::to_string(bytes_ >> 20) + " MB",
            std::strerror(errno), "use more ranks or more memory");
  madvise(memory_, bytes_, MADV_HUGEPAGE);
  char* at = static_cast<char*>(memory_);
  for (const auto& [name, t] : live_) {
    staged_.emplace_back(name,
                         at::from_blob(at, t.sizes(), t.strides(), t.options().device(at::kCPU).requires_grad(false)));
    at += room(t);
  }
}

Staging::~Staging() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

void Staging::touch() {
  for (size_t at = 0; at < bytes_; at += kPage) static_cast<volatile char*>(memory_)[at] = 0;
}

void Staging::copy(int threads) {
  const at::NoGradGuard no_grad;
  struct Piece {
    char* to;
    const char* from;
    size_t bytes;
  };
  std::vector<Piece> pieces;
  for (size_t k = 0; k < live_.size(); ++k) {
    const at::Tensor& live = live_[k].second;
    if (!live.device().is_cpu()) {
      staged_[k].second.copy_(live);
      continue;
    }
    char* to = static_cast<char*>(staged_[k].second.data_ptr());
    const char* from = static_cast<const char*>(live.const_data_ptr());
    for (size_t at = 0; at < live.nbytes(); at += kPiece)
      pieces.push_back({to + at, from + at, std::min(kPiece, live.nbytes() - at)});
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k = next++; k < pieces.size(); k = next++) std::memcpy(pieces[k].to, pieces[k].from, pieces[k].bytes);
  };
  std::vector<std::jthread> helpers;
  for (int t = 1; t < threads && bytes_ > kPiece; ++t) helpers.emplace_back(work);
  work();
}

}  // namespace pal::dist
