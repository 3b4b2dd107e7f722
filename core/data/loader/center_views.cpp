// center_views: the views of evaluation; each thread takes the next sample.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "core/data/loader/loader.h"
#include "core/data/loader/pending_step.h"

namespace pal::data {

at::Tensor load_center_views(const Dataset& data, const std::vector<int64_t>& samples,
                             const kernels::AugmentOptions& augment, at::ScalarType dtype, int threads) {
  const auto rows = static_cast<int64_t>(samples.size());
  at::Tensor images = empty_images(rows, augment, dtype);
  const ViewSet views{.policies = {}, .large = augment};
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  FirstError error;
  const auto work = [&] {
    Renderer tile(data);
    std::vector<uint8_t> bytes;
    for (int64_t i = next++; i < rows; i = next++) {
      try {
        data.read(samples[i], bytes);
        const int64_t at = i * images.stride(0);
        dtype == at::kDouble ? tile.center(images.data_ptr<double>() + at, samples[i], bytes, views)
                             : tile.center(images.data_ptr<float>() + at, samples[i], bytes, views);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error.keep(std::current_exception(), i);
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < std::min<int64_t>(threads, rows); ++i) helpers.emplace_back(work);
    work();
  }
  if (error.error) std::rethrow_exception(error.error);
  return images;
}

}  // namespace pal::data
