// augment: scratch and threads; the checks are in augment_check.h, the loops are in augment_impl.cpp.
#include "kernels/augment.h"

#include <atomic>

#include "kernels/augment_check.h"
#include "kernels/augment_impl.h"
#include "kernels/base/threads.h"

namespace pal::kernels::cpu {
namespace {

using detail::Extent;
using detail::largest;
using detail::ViewBuffers;
using detail::ViewJob;

constexpr int64_t kAlign = 64;

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

template <class T>
using Render = void (*)(const ViewJob<T>&, const AugmentOptions&);
template <class T>
Render<T> choose_render(Cpu cpu) {
  return choose_isa<Render<T>>(cpu.isa, detail::scalar::render_view, detail::avx2::render_view,
                               detail::avx512::render_view);
}

char* first_buffer(Scratch scratch, int64_t bytes) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(scratch.data);
  char* base = static_cast<char*>(scratch.data) + (kAlign - address % kAlign) % kAlign;
  PAL_CHECK(scratch.data && base + bytes <= static_cast<char*>(scratch.data) + scratch.bytes,
            "augment: bytes of scratch", scratch.bytes, "give augment_scratch_bytes()");
  return base;
}

ImagePart as_part(const ImageView& image) { return {.pixels = image}; }
ImagePart as_part(const ImagePart& part) { return part; }

// Calls f(job, i) for every image; job brings the buffers of the thread. Threads take the next free image.
template <class T, class Image, class F>
void for_each_image(Span<const Image> images, const AugmentOptions& options, Scratch scratch, Cpu cpu, const F& f) {
  const Extent extent = largest(images);
  const int64_t workers = std::min<int64_t>(std::max(cpu.threads, 1), images.size);
  const int64_t bytes = thread_bytes<T>(extent, options);
  char* base = first_buffer(scratch, workers * bytes);
  std::atomic<int64_t> next{0};
  parallel_for(cpu, workers, 1, [&](int64_t worker, int64_t) {
    ViewJob<T> job;
    place_buffers(job.buffers, base + worker * bytes, extent, options);
    for (int64_t i = next++; i < images.size; i = next++) {
      job.image = as_part(images[i]);
      f(job, i);
    }
  });
}

}  // namespace

int64_t augment_scratch_bytes(Span<const ImageView> images, const AugmentOptions& options, Cpu cpu) {
  detail::check_options(options);
  return std::max(cpu.threads, 1) * thread_bytes<double>(largest(images), options) + kAlign;
}

int64_t augment_parts_scratch_bytes(Span<const ImagePart> parts, const AugmentOptions& options, Cpu cpu) {
  detail::check_options(options);
  return std::max(cpu.threads, 1) * thread_bytes<double>(largest(parts), options) + kAlign;
}

template <class T>
void augment(T* out, Span<const ImageView> images, Span<const int64_t> sample, Span<const ViewPolicy> views,
             const AugmentOptions& options, Scratch scratch, Cpu cpu) {
  detail::check_augment(out, images, sample, views, options);
  if (images.size == 0 || views.size == 0) return;
  const int64_t pixels = detail::view_elements(options), view_stride = detail::view_stride(images.size, options);
  const Render<T> render = choose_render<T>(cpu);
  for_each_image<T>(images, options, scratch, cpu, [&](ViewJob<T>& job, int64_t i) {
    for (int64_t v = 0; v < views.size; ++v) {
      job.params = draw_view_params(views[v], options.seed, options.step, uint64_t(sample[i]), uint32_t(v),
                                    images[i].height, images[i].width);
      job.out = out + v * view_stride + i * pixels;
      render(job, options);
    }
  });
}

template <class T>
void augment_part(T* out, const ImagePart& image, const ViewParams& params, const AugmentOptions& options,
                  Scratch scratch, Isa isa) {
  detail::check_part(out, image, params, options);
  ViewJob<T> job{.out = out, .image = image, .params = params, .buffers = {}};
  const Extent extent = largest(Span<const ImageView>{&image.pixels, 1});
  place_buffers(job.buffers, first_buffer(scratch, thread_bytes<T>(extent, options)), extent, options);
  choose_render<T>({.isa = isa})(job, options);
}

template <class T>
void augment_parts(T* out, Span<const ImagePart> parts, Span<const ViewParams> params, const AugmentOptions& options,
                   Scratch scratch, Cpu cpu) {
  detail::check_parts(out, parts, params, options);
  if (parts.size == 0) return;
  const int64_t pixels = detail::view_elements(options);
  const Render<T> render = choose_render<T>(cpu);
  for_each_image<T>(parts, options, scratch, cpu, [&](ViewJob<T>& job, int64_t i) {
    job.params = params[i];
    job.out = out + i * pixels;
    render(job, options);
  });
}

template <class T>
void center_view(T* out, Span<const ImageView> images, const AugmentOptions& options, Scratch scratch, Cpu cpu) {
  detail::check_center_view(out, images, options);
  if (images.size == 0) return;
  const int64_t pixels = detail::view_elements(options);
  const Render<T> render = choose_render<T>(cpu);
  for_each_image<T>(images, options, scratch, cpu, [&](ViewJob<T>& job, int64_t i) {
    job.params = {};
    job.params.crop = center_crop(images[i].height, images[i].width);
    job.out = out + i * pixels;
    render(job, options);
  });
}

template void augment(float*, Span<const ImageView>, Span<const int64_t>, Span<const ViewPolicy>, const AugmentOptions&,
                      Scratch, Cpu);
template void augment(double*, Span<const ImageView>, Span<const int64_t>, Span<const ViewPolicy>,
                      const AugmentOptions&, Scratch, Cpu);
template void augment_part(float*, const ImagePart&, const ViewParams&, const AugmentOptions&, Scratch, Isa);
template void augment_part(double*, const ImagePart&, const ViewParams&, const AugmentOptions&, Scratch, Isa);
template void augment_parts(float*, Span<const ImagePart>, Span<const ViewParams>, const AugmentOptions&, Scratch, Cpu);
template void augment_parts(double*, Span<const ImagePart>, Span<const ViewParams>, const AugmentOptions&, Scratch,
                            Cpu);
template void center_view(float*, Span<const ImageView>, const AugmentOptions&, Scratch, Cpu);
template void center_view(double*, Span<const ImageView>, const AugmentOptions&, Scratch, Cpu);

}  // namespace pal::kernels::cpu
