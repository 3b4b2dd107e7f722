// renderer: renders samples in one thread, with buffers that it reuses.
//
// All views of a sample come from one decode of the box that holds their crops, at the smallest scale of the inverse
// DCT (1/8, 1/4, 1/2, 1) at which no crop is smaller than its view. Entropy decoding takes most of the time and must
// pass over everything above a crop, so decoding twice is never cheaper.
// Thread: one per thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/image/device_decoder.h"
#include "core/data/image/jpeg.h"
#include "kernels/augment_params.h"

namespace pal::data {

enum class Decode {
  scaled,  // as above: crops much larger than their view differ a little from the resize of all pixels
  full,    // all pixels of a crop are decoded
};

enum class Draw {
  random,  // by the policies
  none,    // the view of evaluation: the centered square; features without noise
};

// How the views of a sample are made.
struct ViewSet {
  std::vector<kernels::ViewPolicy> policies;  // (V) the large views, then the small ones
  kernels::AugmentOptions large;              // step is filled in by the loader
  int64_t small_views = 0;
  int32_t small_size = 0;
  Decode decode = Decode::scaled;
  double feature_noise = 0;  // features: standard deviation of the noise that makes a view
  Draw draw = Draw::random;

  int64_t large_views() const { return static_cast<int64_t>(policies.size()) - small_views; }
};

// Seconds of CPU time.
struct RenderTimes {
  double read = 0, decode = 0, augment = 0;
};

class Renderer {
 public:
  explicit Renderer(const Dataset& data) : data_(data) {}

  // Samples per tile: enough to hide the locking, few enough to divide a step among threads.
  static int64_t samples_at_once(const Dataset& data) { return data.encoding() == Encoding::jpeg ? 1 : 8; }

  // Draws the parameters of all views of a sample and decodes what they need. Valid until the next call.
  kernels::ImagePart prepare(int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views);
  const std::vector<kernels::ViewParams>& params() const { return params_; }  // of those views
  // The same when the device decodes: draws, and `decoder` begins the box that holds all crops. If it declines, `image`
  // is null and libjpeg has decoded the pixels.
  struct Started {
    std::unique_ptr<DeviceDecoder::Image> image;
    kernels::ImagePart part;  // without pixels if there is an image
  };
  Started begin(DeviceDecoder& decoder, int64_t sample, std::vector<uint8_t>& bytes, const ViewSet& views);

  // All views of a sample: view v goes to out[v], (C, size, size) of the type T.
  template <class T>
  void augment(const std::vector<T*>& out, int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views);

  RenderTimes times;
  int64_t left_to_libjpeg = 0;  // images that the device's decoder did not take

 private:
  struct Size {
    int32_t height, width;
  };
  Size open(int64_t sample, const std::vector<uint8_t>& bytes);
  void draw(int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views);
  kernels::CropBox box_of_crops() const;
  // A row of features, with the noise of the view.
  template <class T>
  void copy_features(T* out, int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views, int64_t view);
  kernels::ImagePart decode(int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views);
  template <class T>
  void render(T* out, const kernels::ImagePart& part, const kernels::ViewParams& params,
              const kernels::AugmentOptions& options);

  const Dataset& data_;
  JpegDecoder decoder_;
  std::vector<uint8_t> pixels_;
  std::vector<kernels::ViewParams> params_;  // of the views of the current sample
  std::vector<int32_t> sizes_;               // of the same
  std::vector<char> scratch_;
};

// The CPU time of this thread so far.
double thread_seconds();

// The largest of 1, 2, 4, 8 that a crop may be reduced by and still have `size` pixels along both sides.
int32_t reduction(const kernels::CropBox& crop, int32_t size);
// The smallest box that holds both.
kernels::CropBox hull(const kernels::CropBox& a, const kernels::CropBox& b);

}  // namespace pal::data
