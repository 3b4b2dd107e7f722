// augment: a batch of uint8 images to V augmented float views.
//
// Shapes: images (B) of any size, HWC uint8 of 1 or 3 channels; out (V, B, C, size, size) in NCHW or channels-last,
//         view-major.
// Math:   per view: random resized crop (bilinear or bicubic, antialiased) → flip → color jitter in random order →
//         gray → Gaussian blur → solarize → normalize. Values are in [0, 1] until normalize. Every step is that of
//         torchvision v2 on float images, but what a bicubic crop overshoots is cut off, as on bytes and in Pillow. The
//         filters are in augment_impl.h, the parameters are drawn in augment_params.h. On one channel (a gray image, or
//         `channels` 1, for which color becomes luma before anything else) saturation, hue and gray change nothing.
// Async:  the CUDA twin reads pixels and writes views in device memory; the arrays `images`, `sample` and `views`
//         themselves are read on the host, before the call returns. Its pixels are the CPU's within 1/255.
// Order:  a function of (seed, step, sample, view) only, never of the batch, the rank or the threads. The same bits for
//         the same instruction set.
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

struct ImageView {
  const uint8_t* data = nullptr;  // (height, width, channels)
  int32_t height = 0, width = 0, channels = 0;
};

// A part of an image, as a decoder gives it that skips the rest or decodes at a reduced size: pixel (y, x) of `pixels`
// covers the square of `unit` pixels of the whole image that begins at ((top + y) · unit, (left + x) · unit).
struct ImagePart {
  ImageView pixels;
  int32_t top = 0, left = 0;
  int32_t unit = 1;
};
struct ViewParams;  // augment_params.h

// What happens to one view. A probability of 0 switches a step off.
struct ViewPolicy {
  float crop_scale_min = 0.08f, crop_scale_max = 1.0f;  // share of the area; both 1: the whole image is resized
  float crop_ratio_min = 0.75f, crop_ratio_max = 4.0f / 3.0f;
  float flip = 0.5f;
  float jitter = 0.8f, brightness = 0.4f, contrast = 0.4f, saturation = 0.2f, hue = 0.1f;
  float gray = 0.2f;
  float blur = 0.0f, blur_sigma_min = 0.1f, blur_sigma_max = 2.0f;
  float solarize = 0.0f, solarize_threshold = 0.5f;
};

enum class Layout { nchw, channels_last };
enum class Interpolation { bilinear, bicubic };

struct AugmentOptions {
  uint64_t seed = 0;
  uint64_t step = 0;
  int32_t size = 0;      // output height and width
  int32_t channels = 3;  // 1 or 3; a gray image is repeated to 3
  Layout layout = Layout::nchw;
  Interpolation interpolation = Interpolation::bilinear;
  float mean[3] = {0, 0, 0};
  float std[3] = {1, 1, 1};
  int64_t view_stride = 0;  // elements of out from one view to the next; 0: B images. Lets a call fill part of a batch
};

namespace cpu {
// For both calls below, either T, and any images that are not larger than the largest of these.
int64_t augment_scratch_bytes(Span<const ImageView> images, const AugmentOptions& options, Cpu cpu);
// sample (B): the id each image's random numbers are drawn for. View v of views (V) draws from stream v.
template <class T>
void augment(T* out, Span<const ImageView> images, Span<const int64_t> sample, Span<const ViewPolicy> views,
             const AugmentOptions& options, Scratch scratch, Cpu cpu);
// One view with the given parameters, by one thread. `image` holds params.crop, a box of the whole image. For a whole
// image with the parameters that augment() draws, the same bits as augment()'s.
template <class T>
void augment_part(T* out, const ImagePart& image, const ViewParams& params, const AugmentOptions& options,
                  Scratch scratch, Isa isa);
// One view of each part, with the parameters given for it (P): out (P, C, size, size). Several views of a part name the
// same pixels.
int64_t augment_parts_scratch_bytes(Span<const ImagePart> parts, const AugmentOptions& options, Cpu cpu);
template <class T>
void augment_parts(T* out, Span<const ImagePart> parts, Span<const ViewParams> params, const AugmentOptions& options,
                   Scratch scratch, Cpu cpu);
// The view without randomness that evaluation uses: the centered square of the shorter side, resized and normalized.
template <class T>
void center_view(T* out, Span<const ImageView> images, const AugmentOptions& options, Scratch scratch, Cpu cpu);
}  // namespace cpu

// T = float, bf16.
namespace cuda {
int64_t augment_scratch_bytes(Span<const ImageView> images, const AugmentOptions& options);
int64_t augment_parts_scratch_bytes(Span<const ImagePart> parts, const AugmentOptions& options);
template <class T>
void augment(T* out, Span<const ImageView> images, Span<const int64_t> sample, Span<const ViewPolicy> views,
             const AugmentOptions& options, Scratch scratch, cudaStream_t stream);
// Pixels in device memory, the arrays on the host.
template <class T>
void augment_parts(T* out, Span<const ImagePart> parts, Span<const ViewParams> params, const AugmentOptions& options,
                   Scratch scratch, cudaStream_t stream);
template <class T>
void center_view(T* out, Span<const ImageView> images, const AugmentOptions& options, Scratch scratch,
                 cudaStream_t stream);
}  // namespace cuda

}  // namespace pal::kernels
