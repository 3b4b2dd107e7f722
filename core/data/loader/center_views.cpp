// center_views: the options of loaders: for evaluation, and for a device that renders.
#include <algorithm>

#include "core/data/loader/loader.h"

namespace pal::data {
namespace {

constexpr int64_t kStepBytes = int64_t{256} << 20;

// Of the view, or of the decoded part that it needs.
int64_t sample_bytes(const Dataset& data, const kernels::AugmentOptions& augment, at::ScalarType dtype) {
  const std::vector<int32_t> shape = data.shape();
  const int64_t part = data.encoding() == Encoding::raw ? int64_t{shape[0]} * shape[1] * shape[2] : 0;
  return std::max({images_bytes(1, augment, dtype), part, int64_t{1}});
}

}  // namespace

LoaderOptions center_views(const Dataset& data, std::vector<int64_t> samples, int64_t batch,
                           const kernels::AugmentOptions& augment, at::ScalarType dtype) {
  LoaderOptions options;
  options.plan.samples = static_cast<int64_t>(samples.size());
  options.plan.global_batch = std::clamp<int64_t>(kStepBytes / sample_bytes(data, augment, dtype), 1, batch);
  options.plan.shuffle = Shuffle::none;
  options.subset = std::move(samples);
  options.views.policies.resize(1);
  options.views.large = augment;
  options.views.draw = Draw::none;
  options.dtype = dtype;
  options.planned_until = options.plan.steps_per_epoch();
  return options;
}

void render_on(at::Device device, const Dataset& data, LoaderOptions& options) {
  if (device.is_cpu() || options.dtype != at::kFloat || data.encoding() == Encoding::features) return;
  options.render = Render::device;
  options.device = device;
}

}  // namespace pal::data
