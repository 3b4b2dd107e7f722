// augment_impl: one view from the image to the output; compiled once per instruction set (PAL_ISA).
#include "kernels/augment_impl.h"

#include "kernels/augment_color.h"
#include "kernels/augment_resize.h"

namespace pal::kernels::detail::PAL_ISA {
namespace {

// Solarizes if asked, normalizes and stores; a single plane is repeated to all channels of out.
template <class T>
void finish(const ViewJob<T>& job, const AugmentOptions& options, int32_t planes) {
  const int64_t plane = int64_t(options.size) * options.size;
  const T threshold = job.params.solarize ? T(job.params.solarize_threshold) : std::numeric_limits<T>::max();
  const int64_t step = options.layout == Layout::channels_last ? options.channels : 1;
  for (int32_t c = 0; c < options.channels; ++c) {
    const T* __restrict in = job.buffers.planes + (planes == 1 ? 0 : c * plane);
    T* __restrict out = job.out + (options.layout == Layout::channels_last ? c : c * plane);
    const T scale = T(1) / T(options.std[c]), shift = -T(options.mean[c]) * scale;
    if (step == 1) {
      for (int64_t i = 0; i < plane; ++i) out[i] = (in[i] >= threshold ? 1 - in[i] : in[i]) * scale + shift;
    } else {
      for (int64_t i = 0; i < plane; ++i) out[3 * i] = (in[i] >= threshold ? 1 - in[i] : in[i]) * scale + shift;
    }
  }
}

template <class T>
void render(const ViewJob<T>& job, const AugmentOptions& options) {
  const int32_t planes = options.channels == 1 ? 1 : job.image.pixels.channels;
  const int64_t plane = int64_t(options.size) * options.size;
  T* p = job.buffers.planes;
  crop_resize(job, options.interpolation, options.size, planes);
  if (job.params.jitter) jitter(p, options.size, planes, job.params);
  if (job.params.gray && planes == 3) saturate(p, p + plane, p + 2 * plane, plane, T(0));
  if (job.params.blur) blur(job.buffers, options.size, planes, job.params.blur_sigma);
  finish(job, options, planes);
}

}  // namespace

void render_view(const ViewJob<float>& job, const AugmentOptions& options) { render(job, options); }
void render_view(const ViewJob<double>& job, const AugmentOptions& options) { render(job, options); }

}  // namespace pal::kernels::detail::PAL_ISA
