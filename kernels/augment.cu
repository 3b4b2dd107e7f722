// augment on CUDA: the views of up to kImages images at a time, each from its bytes to its place in out.
//
//   plan    what happens to each view is drawn, and the filters of its crop-resize and blur are filled
//   mean    only where contrast changes: the mean of the luma at that moment, from pixels that are not kept
//   render  crop-resize, color, and the end; a view that is blurred goes to scratch first
//   blur    such views, both directions at once through shared memory
// Resizing twice costs less than a trip of float planes through memory. A warp owns 32 columns and kBand rows of the
// output: it resamples each row of bytes once along x and adds it to those of its rows that take it.
#include "kernels/augment.cuh"

namespace pal::kernels::cuda {
namespace {

constexpr int kImages = 64, kParts = 32;  // what fits in a kernel's parameters
constexpr int kBlurThreads = 256;
constexpr int kBlurRows = 64, kBlurColumns = 16;  // of a tile; with the margins of the largest views it takes 30 kB

enum class Draw { random, center };

struct Images {
  ImageView image[kImages];
  int64_t sample[kImages];
};
struct Parts {
  ImagePart part[kParts];
  ViewParams params[kParts];
};

// ---- plan ----
// A thread per image.
__global__ void draw_kernel(Work w, Images images, int count, ViewPolicy policy, uint32_t view, Draw draw) {
  const int i = threadIdx.x;
  if (i >= count) return;
  const ImageView image = images.image[i];
  ViewParams params;
  if (draw == Draw::random) {
    params =
        draw_view_params(policy, w.options.seed, w.options.step, images.sample[i], view, image.height, image.width);
  } else {
    params.crop = center_crop(image.height, image.width);
  }
  PAL_DEVICE_CHECK(params.crop.top >= 0 && params.crop.top + params.crop.height <= image.height);
  PAL_DEVICE_CHECK(params.crop.left >= 0 && params.crop.left + params.crop.width <= image.width);
  w.plan[i] = {{image}, params, 0, 0, 0};
}

__global__ void take_kernel(Work w, Parts parts, int count) {
  const int i = threadIdx.x;
  if (i < count) w.plan[i] = {parts.part[i], parts.params[i], 0, 0, 0};
}

enum class Order { forward, reversed };

__device__ void fill_axis(const Axis& axis, int64_t image, const AxisFilter& filter, int32_t size, double gain,
                          Order order) {
  for (int32_t i = threadIdx.x; i < size; i += kThreads) {
    const int32_t o = order == Order::reversed ? size - 1 - i : i, begin = filter.begin(o), end = filter.end(o);
    double sum = 0;
    for (int32_t p = begin; p < end; ++p) sum += filter.weight(p, o);
    const double factor = gain / sum;
    float* to = axis.weights + image * axis.capacity + i;
    for (int32_t p = begin; p < end; ++p)
      to[static_cast<int64_t>(p - begin) * size] = static_cast<float>(filter.weight(p, o) * factor);
    axis.first[image * size + i] = begin;
    axis.end[image * size + i] = end;
  }
}

// A block per image.
__global__ void __launch_bounds__(kThreads) filters_kernel(Work w) {
  const int64_t i = blockIdx.x;
  Plan& plan = w.plan[i];
  const CropBox crop = plan.params.crop;
  const Reach across(crop.left, crop.width, plan.part.left, plan.part.pixels.width, plan.part.unit);
  const Reach down(crop.top, crop.height, plan.part.top, plan.part.pixels.height, plan.part.unit);
  fill_axis(w.x, i, {w.options.interpolation, across.length, w.size, across.origin, across.extent}, w.size, 1.0,
            plan.params.flip ? Order::reversed : Order::forward);
  fill_axis(w.y, i, {w.options.interpolation, down.length, w.size, down.origin, down.extent}, w.size, 1.0 / 255,
            Order::forward);
  if (threadIdx.x != 0) return;
  plan.top = down.first;
  plan.left = across.first;
  if (!plan.params.blur) return;
  const detail::BlurFilter filter(plan.params.blur_sigma, w.full_radius, 1.1920929e-7);
  plan.blur_radius = filter.radius;
  float* weights = w.blur_weights + i * (w.full_radius + 1);
  for (int32_t k = 0; k <= filter.radius; ++k) weights[k] = static_cast<float>(filter.weight(k));
}

// ---- mean ----
__global__ void __launch_bounds__(kThreads) mean_kernel(Work w) {
  const int64_t image = blockIdx.y;
  const Plan& plan = w.plan[image];
  if (!changes(plan.params, kContrast)) return;
  Pixels p;
  const int planes = load_pixels(p, w, plan, image);
  jitter(p, plan.params, planes, 0, Until::contrast);
  float sum = 0;
#pragma unroll
  for (int r = 0; r < kBand; ++r) {
    if (p.x < w.size && p.y + r < w.size) sum += planes == 1 ? p.v[r][0] : luma(p.v[r][0], p.v[r][1], p.v[r][2]);
  }
  const double total = block_sum(sum);
  if (threadIdx.x == 0) w.luma_sums[image * w.tiles + blockIdx.x] = total;
}

// ---- render ----
template <class T>
__device__ void finish(T* out, const Work& w, const ViewParams& params, int32_t x, int32_t y, int c, float v) {
  if (params.solarize && v >= params.solarize_threshold) v = 1 - v;
  const int64_t pixel = static_cast<int64_t>(y) * w.size + x;
  const int64_t place = w.options.layout == Layout::channels_last ? pixel * w.options.channels + c
                                                                  : static_cast<int64_t>(c) * w.size * w.size + pixel;
  out[place] = from_float<T>(v * w.gain[c] + w.shift[c]);
}

template <class T>
__global__ void __launch_bounds__(kThreads) render_kernel(T* out, Work w) {
  const int64_t image = blockIdx.y, plane = static_cast<int64_t>(w.size) * w.size;
  const Plan& plan = w.plan[image];
  const ViewParams& params = plan.params;
  __shared__ float mean;
  if (changes(params, kContrast)) {
    double sum = 0;
    for (int t = threadIdx.x; t < w.tiles; t += kThreads) sum += w.luma_sums[image * w.tiles + t];
    sum = block_sum(sum);
    if (threadIdx.x == 0) mean = static_cast<float>(sum / static_cast<double>(plane));
    __syncthreads();
  }
  Pixels p;
  const int planes = load_pixels(p, w, plan, image);
  if (params.jitter) jitter(p, params, planes, changes(params, kContrast) ? mean : 0.0f, Until::end);
  if (params.gray && planes == 3) saturate(p, 0);
  out += image * w.options.channels * plane;
  float* keep = w.planes + image * 3 * plane;
#pragma unroll
  for (int r = 0; r < kBand; ++r) {
    const int32_t y = p.y + r;
    if (p.x >= w.size || y >= w.size) continue;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const float v = planes == 1 ? p.v[r][0] : p.v[r][c];
      if (params.blur) {
        if (c < planes) keep[c * plane + static_cast<int64_t>(y) * w.size + p.x] = v;
      } else if (c < w.options.channels) {
        finish(out, w, params, p.x, y, c, v);
      }
    }
  }
}

// ---- blur ----
// A block per tile: along x into shared memory, with a margin above and below, then along y.
template <class T>
__global__ void __launch_bounds__(kBlurThreads) blur_kernel(T* out, Work w, int32_t across) {
  extern __shared__ float along_x[];  // (kBlurRows + 2 · radius, kBlurColumns)
  const int64_t image = blockIdx.y, plane = static_cast<int64_t>(w.size) * w.size;
  const Plan& plan = w.plan[image];
  if (!plan.params.blur) return;
  const float* weights = w.blur_weights + image * (w.full_radius + 1);
  const int32_t radius = plan.blur_radius, planes = w.options.channels == 1 ? 1 : plan.part.pixels.channels;
  const int32_t x = static_cast<int32_t>(blockIdx.x) % across * kBlurColumns + threadIdx.x % kBlurColumns;
  const int32_t y0 = static_cast<int32_t>(blockIdx.x) / across * kBlurRows;
  const int32_t rows = x < w.size ? min(kBlurRows, w.size - y0) : 0;
  out += image * w.options.channels * plane;
  for (int32_t c = 0; c < planes; ++c) {
    const float* from = w.planes + (image * 3 + c) * plane;
    for (int32_t n = threadIdx.x; n / kBlurColumns < rows + 2 * radius && rows > 0; n += kBlurThreads) {
      const float* row = from + static_cast<int64_t>(detail::reflect(y0 - radius + n / kBlurColumns, w.size)) * w.size;
      float sum = weights[0] * row[x];
      if (x >= radius && x + radius < w.size) {
        for (int32_t k = 1; k <= radius; ++k) sum += weights[k] * (row[x - k] + row[x + k]);
      } else {
        for (int32_t k = 1; k <= radius; ++k) {
          sum += weights[k] * (row[detail::reflect(x - k, w.size)] + row[detail::reflect(x + k, w.size)]);
        }
      }
      along_x[n] = sum;
    }
    __syncthreads();
    for (int32_t n = threadIdx.x; n / kBlurColumns < rows; n += kBlurThreads) {
      const float* at = along_x + n + radius * kBlurColumns;
      float sum = weights[0] * at[0];
      for (int32_t k = 1; k <= radius; ++k) sum += weights[k] * (at[-k * kBlurColumns] + at[k * kBlurColumns]);
      const int32_t last = planes == 1 ? w.options.channels - 1 : c;  // a single plane is repeated
      for (int32_t to = c; to <= last; ++to) finish(out, w, plan.params, x, y0 + n / kBlurColumns, to, sum);
    }
    __syncthreads();  // the next plane overwrites along_x
  }
}

// What some of the views may need; what none of them needs is not launched.
struct Needs {
  bool mean, blur;
};

// Views whose plan is drawn or taken, from there to their place.
template <class T>
void render_planned(T* out, const Work& w, unsigned count, Needs needs, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(w.tiles), count);
  filters_kernel<<<count, kThreads, 0, stream>>>(w);
  check_launch(stream);
  if (needs.mean) {
    mean_kernel<<<grid, kThreads, 0, stream>>>(w);
    check_launch(stream);
  }
  render_kernel<T><<<grid, kThreads, 0, stream>>>(out, w);
  check_launch(stream);
  if (!needs.blur) return;
  const auto across = static_cast<int32_t>(ceil_div(w.size, kBlurColumns));
  const dim3 blur_grid(static_cast<unsigned>(across * ceil_div(w.size, kBlurRows)), count);
  const size_t shared = sizeof(float) * kBlurColumns * (kBlurRows + 2 * w.full_radius);
  blur_kernel<T><<<blur_grid, kBlurThreads, shared, stream>>>(out, w, across);
  check_launch(stream);
}

// One view of all images.
template <class T>
void render_view(T* out, Span<const ImageView> images, const int64_t* sample, const ViewPolicy& policy, uint32_t view,
                 Draw draw, const AugmentOptions& options, Scratch scratch, cudaStream_t stream) {
  const Work w(scratch.data, std::min<int64_t>(images.size, kImages), detail::largest(images), options);
  check_scratch("augment", scratch, w.bytes);
  for (int64_t begin = 0; begin < images.size; begin += kImages) {
    Images some{};
    const auto count = static_cast<unsigned>(std::min<int64_t>(images.size - begin, kImages));
    for (unsigned i = 0; i < count; ++i) {
      some.image[i] = images[begin + i];
      some.sample[i] = sample ? sample[begin + i] : 0;
    }
    draw_kernel<<<1, kImages, 0, stream>>>(w, some, static_cast<int>(count), policy, view, draw);
    check_launch(stream);
    render_planned(out + begin * detail::view_elements(options), w, count,
                   {policy.jitter > 0 && policy.contrast > 0, policy.blur > 0}, stream);
  }
}

}  // namespace

int64_t augment_scratch_bytes(Span<const ImageView> images, const AugmentOptions& options) {
  detail::check_options(options);
  return images.size == 0
             ? 0
             : Work(nullptr, std::min<int64_t>(images.size, kImages), detail::largest(images), options).bytes;
}

int64_t augment_parts_scratch_bytes(Span<const ImagePart> parts, const AugmentOptions& options) {
  detail::check_options(options);
  return parts.size == 0 ? 0
                         : Work(nullptr, std::min<int64_t>(parts.size, kParts), detail::largest(parts), options).bytes;
}

template <class T>
void augment(T* out, Span<const ImageView> images, Span<const int64_t> sample, Span<const ViewPolicy> views,
             const AugmentOptions& options, Scratch scratch, cudaStream_t stream) {
  detail::check_augment(out, images, sample, views, options);
  if (images.size == 0) return;
  for (int64_t v = 0; v < views.size; ++v) {
    render_view(out + v * detail::view_stride(images.size, options), images, sample.data, views[v],
                static_cast<uint32_t>(v), Draw::random, options, scratch, stream);
  }
}

template <class T>
void augment_parts(T* out, Span<const ImagePart> parts, Span<const ViewParams> params, const AugmentOptions& options,
                   Scratch scratch, cudaStream_t stream) {
  detail::check_parts(out, parts, params, options);
  if (parts.size == 0) return;
  const Work w(scratch.data, std::min<int64_t>(parts.size, kParts), detail::largest(parts), options);
  check_scratch("augment_parts", scratch, w.bytes);
  for (int64_t begin = 0; begin < parts.size; begin += kParts) {
    Parts some{};
    Needs needs{};
    const auto count = static_cast<unsigned>(std::min<int64_t>(parts.size - begin, kParts));
    for (unsigned i = 0; i < count; ++i) {
      some.part[i] = parts[begin + i];
      some.params[i] = params[begin + i];
      needs.mean |= some.params[i].jitter;
      needs.blur |= some.params[i].blur;
    }
    take_kernel<<<1, kParts, 0, stream>>>(w, some, static_cast<int>(count));
    check_launch(stream);
    render_planned(out + begin * detail::view_elements(options), w, count, needs, stream);
  }
}

template <class T>
void center_view(T* out, Span<const ImageView> images, const AugmentOptions& options, Scratch scratch,
                 cudaStream_t stream) {
  detail::check_center_view(out, images, options);
  if (images.size == 0) return;
  ViewPolicy still;
  still.jitter = still.blur = 0;
  render_view(out, images, nullptr, still, 0, Draw::center, options, scratch, stream);
}

#define PAL_INSTANTIATE(T)                                                                                          \
  template void augment<T>(T*, Span<const ImageView>, Span<const int64_t>, Span<const ViewPolicy>,                  \
                           const AugmentOptions&, Scratch, cudaStream_t);                                           \
  template void augment_parts<T>(T*, Span<const ImagePart>, Span<const ViewParams>, const AugmentOptions&, Scratch, \
                                 cudaStream_t);                                                                     \
  template void center_view<T>(T*, Span<const ImageView>, const AugmentOptions&, Scratch, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
