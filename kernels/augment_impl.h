// augment_impl: the seam between augment's checks (augment.cpp) and its vector loops (augment_impl.cpp, one per ISA).
#pragma once

#include "kernels/augment_filter.h"
#include "kernels/augment_params.h"

namespace pal::kernels::detail {

constexpr int32_t kMaxSize = 4096;  // of the output

// Filter weights of one axis: output x is Σ_j weights[j · size + x] · input[first[x] + j], j < count.
template <class T>
struct Taps {
  T* weights = nullptr;      // (count, size)
  int32_t* first = nullptr;  // (size)
  int32_t count = 0;
};

// Memory of one thread.
template <class T>
struct ViewBuffers {
  T* planes = nullptr;   // (3, size, size)
  T* blurred = nullptr;  // (size, size) a plane blurred along x only
  T* row = nullptr;      // (largest row a step needs, and 4 more)
  Taps<T> x, y;
};

template <class T>
struct ViewJob {
  T* out = nullptr;  // (C, size, size) in options.layout
  ImagePart image;
  ViewParams params;
  ViewBuffers<T> buffers;
};

// Weights that an axis of `length` pixels needs at most.
inline int64_t taps_capacity(int64_t length, int64_t size, Interpolation interpolation) {
  return size * (2 * filter_radius(interpolation) * ((length + size - 1) / size) + 3);
}

// One view from the image to its place in out. params.crop lies inside the part.
#define PAL_AUGMENT_ISA(isa)                                                   \
  namespace isa {                                                              \
  void render_view(const ViewJob<float>& job, const AugmentOptions& options);  \
  void render_view(const ViewJob<double>& job, const AugmentOptions& options); \
  }
PAL_AUGMENT_ISA(scalar)
PAL_AUGMENT_ISA(avx2)
PAL_AUGMENT_ISA(avx512)
#undef PAL_AUGMENT_ISA

}  // namespace pal::kernels::detail
