// renderer: a few samples, read and rendered by one thread.
#include "core/data/loader/renderer.h"

#include <time.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::data {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int32_t reduction(const kernels::CropBox& crop, int32_t size) {
  int32_t unit = 8;
  while (unit > 1 && std::min(crop.height, crop.width) < size * unit) unit /= 2;
  return unit;
}

kernels::CropBox hull(const kernels::CropBox& a, const kernels::CropBox& b) {
  const int32_t top = std::min(a.top, b.top), left = std::min(a.left, b.left);
  return {top, left, std::max(a.top + a.height, b.top + b.height) - top,
          std::max(a.left + a.width, b.left + b.width) - left};
}

Renderer::Size Renderer::open(int64_t sample, const std::vector<uint8_t>& bytes) {
  if (data_.encoding() == Encoding::raw) {
    const kernels::ImageView image = data_.image(sample, bytes);
    return {image.height, image.width};
  }
  try {
    const JpegHeader header = inspect_jpeg(bytes.data(), bytes.size(), JpegWalk::to_first_scan);
    return {header.height, header.width};
  } catch (const Error& error) {
    throw Error(error.code(), data_.where(sample) + ": " + error.what());
  }
}

kernels::CropBox Renderer::box_of_crops() const {
  kernels::CropBox box = params_[0].crop;
  for (const kernels::ViewParams& p : params_) box = hull(box, p.crop);
  return box;
}

// What the views in params_ need.
kernels::ImagePart Renderer::decode(int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views) {
  if (data_.encoding() == Encoding::raw) return {.pixels = data_.image(sample, bytes)};
  const kernels::CropBox box = box_of_crops();
  int32_t unit = views.decode == Decode::scaled ? 8 : 1;
  for (size_t v = 0; v < params_.size(); ++v) unit = std::min(unit, reduction(params_[v].crop, sizes_[v]));
  const auto up = [unit](int32_t x) { return (x + unit - 1) / unit; };
  JpegPart part{.eighths = 8 / unit, .box = {.top = box.top / unit, .left = box.left / unit}};
  part.box.height = up(box.top + box.height) - part.box.top;
  part.box.width = up(box.left + box.width) - part.box.left;
  try {
    const DecodedJpeg decoded = decoder_.decode(bytes.data(), bytes.size(), part, pixels_);
    return {{pixels_.data(), decoded.box.height, decoded.box.width, 3}, decoded.box.top, decoded.box.left, unit};
  } catch (const Error& error) {
    throw Error(error.code(), data_.where(sample) + ": " + error.what());
  }
}

template <class T>
void Renderer::render(T* out, const kernels::ImagePart& part, const kernels::ViewParams& params,
                      const kernels::AugmentOptions& options) {
  const int64_t need = kernels::cpu::augment_scratch_bytes({&part.pixels, 1}, options, {1});
  if (static_cast<int64_t>(scratch_.size()) < need) scratch_.resize(static_cast<size_t>(need));
  kernels::cpu::augment_part(out, part, params, options, {scratch_.data(), static_cast<int64_t>(scratch_.size())},
                             kernels::best_isa());
}

void Renderer::draw(int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views) {
  const Size size = open(sample, bytes);
  const auto large = static_cast<size_t>(views.large_views());
  params_.resize(views.policies.size());
  sizes_.resize(params_.size());
  for (size_t v = 0; v < params_.size(); ++v) {
    if (views.draw == Draw::none)
      params_[v] = {.crop = kernels::center_crop(size.height, size.width)};
    else
      params_[v] =
          kernels::draw_view_params(views.policies[v], views.large.seed, views.large.step,
                                    static_cast<uint64_t>(sample), static_cast<uint32_t>(v), size.height, size.width);
    sizes_[v] = v < large ? views.large.size : views.small_size;
  }
}

kernels::ImagePart Renderer::prepare(int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views) {
  draw(sample, bytes, views);
  return decode(sample, bytes, views);
}

Renderer::Started Renderer::begin(DeviceDecoder& decoder, int64_t sample, std::vector<uint8_t>& bytes,
                                  const ViewSet& views) {
  draw(sample, bytes, views);
  const kernels::CropBox box = box_of_crops();
  try {
    std::unique_ptr<DeviceDecoder::Image> image = decoder.begin(bytes, {box.top, box.left, box.height, box.width});
    if (image) return {std::move(image), {{nullptr, box.height, box.width, 3}, box.top, box.left}};
  } catch (const Error& error) {
    throw Error(error.code(), data_.where(sample) + ": " + error.what());
  }
  ++left_to_libjpeg;
  return {nullptr, decode(sample, bytes, views)};
}

template <class T>
void Renderer::copy_features(T* out, int64_t sample, const std::vector<uint8_t>& bytes, const ViewSet& views,
                             int64_t view) {
  const auto* row = reinterpret_cast<const float*>(bytes.data());
  const auto dims = static_cast<int64_t>(bytes.size() / sizeof(float));
  Random random(views.large.seed, Purpose::augment, views.large.step, static_cast<uint64_t>(sample),
                static_cast<uint32_t>(view));
  for (int64_t k = 0; k < dims; ++k)
    out[k] = static_cast<T>(row[k] + (views.draw == Draw::none ? 0.0 : views.feature_noise * random.normal()));
}

template <class T>
void Renderer::augment(const std::vector<T*>& out, int64_t sample, const std::vector<uint8_t>& bytes,
                       const ViewSet& views) {
  const double start = thread_seconds();
  if (data_.encoding() == Encoding::features) {
    for (size_t v = 0; v < out.size(); ++v) copy_features(out[v], sample, bytes, views, static_cast<int64_t>(v));
    times.augment += thread_seconds() - start;
    return;
  }
  const kernels::ImagePart part = prepare(sample, bytes, views);
  const double decoded = thread_seconds();
  kernels::AugmentOptions options = views.large;
  for (size_t v = 0; v < params_.size(); ++v) {
    options.size = sizes_[v];
    render(out[v], part, params_[v], options);
  }
  times.decode += decoded - start;
  times.augment += thread_seconds() - decoded;
}

template void Renderer::augment(const std::vector<float*>&, int64_t, const std::vector<uint8_t>&, const ViewSet&);
template void Renderer::augment(const std::vector<double*>&, int64_t, const std::vector<uint8_t>&, const ViewSet&);

}  // namespace pal::data
