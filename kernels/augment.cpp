// augment: checks, scratch and threads; the loops are in augment_impl.cpp.
#include "kernels/augment.h"

#include <atomic>
#include <cmath>

#include "kernels/augment_impl.h"
#include "kernels/base/threads.h"

namespace pal::kernels::cpu {
namespace {

using detail::ViewBuffers;
using detail::ViewJob;

constexpr int64_t kAlign = 64;

struct Extent {
  int64_t height = 1, width = 1;
};

Extent largest(Span<const ImageView> images) {
  Extent e;
  for (int64_t i = 0; i < images.size; ++i) {
    e.height = std::max<int64_t>(e.height, images[i].height);
    e.width = std::max<int64_t>(e.width, images[i].width);
  }
  return e;
}

// Lays the buffers of one thread into memory from `base` on (null: only measures) and returns the bytes they take.
template <class T>
int64_t place_buffers(ViewBuffers<T>& b, char* base, Extent extent, const AugmentOptions& options) {
  const int64_t size = options.size;
  int64_t used = 0;
  const auto take = [&](auto*& pointer, int64_t n) {
    if (base) pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(base + used);
    used += (n * int64_t(sizeof(*pointer)) + kAlign - 1) / kAlign * kAlign;
  };
  take(b.planes, 3 * size * size);
  take(b.blurred, size * size);
  take(b.row, std::max(3 * extent.width, size + blur_kernel_size(int32_t(size))) + 4);
  take(b.x.weights, detail::taps_capacity(extent.width, size, options.interpolation));
  take(b.y.weights, detail::taps_capacity(extent.height, size, options.interpolation));
  take(b.x.first, size);
  take(b.y.first, size);
  return used;
}

template <class T>
int64_t thread_bytes(Extent extent, const AugmentOptions& options) {
  ViewBuffers<T> b;
  return place_buffers(b, nullptr, extent, options);
}

void check_probability(float p, const char* name) {
  PAL_CHECK(p >= 0 && p <= 1, std::string("augment: probability of ") + name, p, "give a number from 0 to 1");
}

void check_policy(const ViewPolicy& p) {
  check_probability(p.flip, "flip");
  check_probability(p.jitter, "jitter");
  check_probability(p.gray, "gray");
  check_probability(p.blur, "blur");
  check_probability(p.solarise, "solarise");
  PAL_CHECK(p.crop_scale_min > 0 && p.crop_scale_min <= p.crop_scale_max && p.crop_scale_max <= 1,
            "augment: smallest share of the area", p.crop_scale_min, "give 0 < min <= max <= 1");
  PAL_CHECK(p.crop_ratio_min > 0 && p.crop_ratio_min <= p.crop_ratio_max && std::isfinite(p.crop_ratio_max),
            "augment: smallest aspect ratio", p.crop_ratio_min, "give 0 < min <= max");
  for (const float strength : {p.brightness, p.contrast, p.saturation}) {
    PAL_CHECK(strength >= 0 && std::isfinite(strength), "augment: strength of the jitter", strength, "give a number >= 0");
  }
  PAL_CHECK(p.hue >= 0 && p.hue <= 0.5f, "augment: strength of the hue jitter", p.hue, "give a number from 0 to 0.5");
  PAL_CHECK(p.blur_sigma_min > 0 && p.blur_sigma_min <= p.blur_sigma_max && std::isfinite(p.blur_sigma_max),
            "augment: smallest sigma of the blur", p.blur_sigma_min, "give 0 < min <= max");
  PAL_CHECK(std::isfinite(p.solarise_threshold), "augment: solarise threshold", p.solarise_threshold, "give a number");
}

void check_options(const AugmentOptions& o) {
  PAL_CHECK(o.size >= 1 && o.size <= detail::kMaxSize, "augment: size of the views", o.size, "give 1 to 4096 pixels");
  PAL_CHECK(o.channels == 1 || o.channels == 3, "augment: channels of the views", o.channels, "give 1 or 3");
  for (int c = 0; c < o.channels; ++c) {
    PAL_CHECK(std::isfinite(o.mean[c]), "augment: mean of a channel", o.mean[c], "give a finite number");
    PAL_CHECK(std::isfinite(o.std[c]) && o.std[c] > 0, "augment: std of a channel", o.std[c], "give a number above 0");
  }
}

void check_images(Span<const ImageView> images) {
  for (int64_t i = 0; i < images.size; ++i) {
    const ImageView& image = images[i];
    PAL_CHECK(image.data && image.height > 0 && image.width > 0, "augment: empty image at position", i,
              "give images of at least 1x1 pixel");
    PAL_CHECK(image.channels == 1 || image.channels == 3, "augment: channels of an image", image.channels, "give 1 or 3");
  }
}

template <class T>
using Render = void (*)(const ViewJob<T>&, const AugmentOptions&);
template <class T>
Render<T> choose_render(Cpu cpu) {
  return choose_isa<Render<T>>(cpu.isa, detail::scalar::render_view, detail::avx2::render_view, detail::avx512::render_view);
}

// Calls f(job, i) for every image; job brings the buffers of the thread. Threads take the next free image.
template <class T, class F>
void for_each_image(Span<const ImageView> images, const AugmentOptions& options, Scratch scratch, Cpu cpu, const F& f) {
  const Extent extent = largest(images);
  const int64_t workers = std::min<int64_t>(std::max(cpu.threads, 1), images.size);
  const int64_t bytes = thread_bytes<T>(extent, options);
  const uintptr_t address = reinterpret_cast<uintptr_t>(scratch.data);
  char* base = static_cast<char*>(scratch.data) + (kAlign - address % kAlign) % kAlign;
  PAL_CHECK(scratch.data && base + workers * bytes <= static_cast<char*>(scratch.data) + scratch.bytes,
            "augment: bytes of scratch", scratch.bytes, "give augment_scratch_bytes()");
  std::atomic<int64_t> next{0};
  parallel_for(cpu, workers, 1, [&](int64_t worker, int64_t) {
    ViewJob<T> job;
    place_buffers(job.buffers, base + worker * bytes, extent, options);
    for (int64_t i = next++; i < images.size; i = next++) {
      job.image = images[i];
      f(job, i);
    }
  });
}

}  // namespace

int64_t augment_scratch_bytes(Span<const ImageView> images, const AugmentOptions& options, Cpu cpu) {
  check_options(options);
  return std::max(cpu.threads, 1) * thread_bytes<double>(largest(images), options) + kAlign;
}

template <class T>
void augment(T* out, Span<const ImageView> images, Span<const int64_t> sample, Span<const ViewPolicy> views,
             const AugmentOptions& options, Scratch scratch, Cpu cpu) {
  check_options(options);
  check_images(images);
  PAL_CHECK(sample.size == images.size, "augment: number of sample ids", sample.size, "give one per image");
  for (int64_t v = 0; v < views.size; ++v) check_policy(views[v]);
  const int64_t pixels = int64_t(options.channels) * options.size * options.size;
  PAL_CHECK(options.view_stride == 0 || options.view_stride >= images.size * pixels, "augment: view stride",
            options.view_stride, "give 0 or at least the elements of one view of the batch");
  if (images.size == 0 || views.size == 0) return;
  PAL_CHECK(out, "augment: out", "null", "give room for all views");
  const int64_t view_stride = options.view_stride ? options.view_stride : images.size * pixels;
  const Render<T> render = choose_render<T>(cpu);
  for_each_image<T>(images, options, scratch, cpu, [&](ViewJob<T>& job, int64_t i) {
    for (int64_t v = 0; v < views.size; ++v) {
      job.params = draw_view_params(views[v], options.seed, options.step, uint64_t(sample[i]), uint32_t(v),
                                    job.image.height, job.image.width);
      job.out = out + v * view_stride + i * pixels;
      render(job, options);
    }
  });
}

template <class T>
void centre_view(T* out, Span<const ImageView> images, const AugmentOptions& options, Scratch scratch, Cpu cpu) {
  check_options(options);
  check_images(images);
  if (images.size == 0) return;
  PAL_CHECK(out, "centre_view: out", "null", "give room for all views");
  const int64_t pixels = int64_t(options.channels) * options.size * options.size;
  const Render<T> render = choose_render<T>(cpu);
  for_each_image<T>(images, options, scratch, cpu, [&](ViewJob<T>& job, int64_t i) {
    job.params = {};
    job.params.crop = fallback_crop(job.image.height, job.image.width, 1, 1);
    job.out = out + i * pixels;
    render(job, options);
  });
}

template void augment(float*, Span<const ImageView>, Span<const int64_t>, Span<const ViewPolicy>, const AugmentOptions&, Scratch, Cpu);
template void augment(double*, Span<const ImageView>, Span<const int64_t>, Span<const ViewPolicy>, const AugmentOptions&, Scratch, Cpu);
template void centre_view(float*, Span<const ImageView>, const AugmentOptions&, Scratch, Cpu);
template void centre_view(double*, Span<const ImageView>, const AugmentOptions&, Scratch, Cpu);

}  // namespace pal::kernels::cpu
