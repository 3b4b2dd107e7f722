// tile: a few samples, read and rendered by one thread.
#include "core/data/tile.h"

#include <ATen/ops/empty.h>

#include "kernels/base/error.h"

namespace pal {
namespace {

int64_t image_elements(const kernels::AugmentOptions& options) {
  return int64_t{options.channels} * options.size * options.size;
}

}  // namespace

at::Tensor empty_images(int64_t rows, const kernels::AugmentOptions& options, at::ScalarType dtype) {
  PAL_CHECK(dtype == at::kFloat || dtype == at::kDouble, "type of the images", c10::toString(dtype), "use float32 or float64");
  const auto format = options.layout == kernels::Layout::channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return at::empty({rows, options.channels, options.size, options.size}, at::TensorOptions(dtype).memory_format(format));
}

void check_encoding(const Dataset& data) {
  PAL_DATA_CHECK(data.encoding() == Encoding::raw, "the data set stores JPEG files, which cannot be decoded here", "",
                 "import it as raw pixels");
}

void Tile::read(const int64_t* samples, int64_t count, const kernels::AugmentOptions& options) {
  if (static_cast<int64_t>(bytes_.size()) < count) bytes_.resize(count);
  images_.resize(count);
  for (int64_t i = 0; i < count; ++i) {
    data_.read(samples[i], bytes_[i]);
    images_[i] = data_.image(samples[i], bytes_[i]);
  }
  const int64_t need = kernels::cpu::augment_scratch_bytes({images_.data(), count}, options, {1});
  if (static_cast<int64_t>(scratch_.size()) < need) scratch_.resize(need);
}

void Tile::augment(at::Tensor& images, const std::vector<int64_t>& samples, int64_t begin, int64_t count,
                   const std::vector<kernels::ViewPolicy>& views, kernels::AugmentOptions options) {
  read(samples.data() + begin, count, options);
  const int64_t elements = image_elements(options);
  options.view_stride = images.size(0) / static_cast<int64_t>(views.size()) * elements;
  const auto render = [&](auto* out) {
    kernels::cpu::augment(out + begin * elements, {images_.data(), count}, {samples.data() + begin, count},
                          {views.data(), static_cast<int64_t>(views.size())}, options,
                          {scratch_.data(), static_cast<int64_t>(scratch_.size())}, {1});
  };
  images.scalar_type() == at::kDouble ? render(images.data_ptr<double>()) : render(images.data_ptr<float>());
}

void Tile::centre(at::Tensor& images, const std::vector<int64_t>& samples, int64_t begin, int64_t count,
                  const kernels::AugmentOptions& options) {
  read(samples.data() + begin, count, options);
  const auto render = [&](auto* out) {
    kernels::cpu::centre_view(out + begin * image_elements(options), {images_.data(), count}, options,
                              {scratch_.data(), static_cast<int64_t>(scratch_.size())}, {1});
  };
  images.scalar_type() == at::kDouble ? render(images.data_ptr<double>()) : render(images.data_ptr<float>());
}

}  // namespace pal
