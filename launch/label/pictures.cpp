#include "launch/label/pictures.h"

#include <algorithm>
#include <filesystem>

#include "core/data/image/jpeg_header.h"
#include "core/data/image/picture.h"
#include "core/data/image/png.h"
#include "core/io/files.h"
#include "kernels/base/error.h"
#include "launch/run/montage.h"

namespace pal::launch {
namespace {

constexpr int32_t kSmall = 320;  // pixels of the shorter side, above which the page gets a smaller picture

std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

PageImage as_png(const data::Picture& picture) {
  return {"image/png",
          text_of(data::encode_png(picture.pixels.data(), picture.height, picture.width, picture.channels))};
}

}  // namespace

Pictures::Pictures(std::shared_ptr<const data::Dataset> data, std::string folder)
    : data_(std::move(data)), folder_(std::move(folder)) {
  PAL_CHECK(folder_.empty() || std::filesystem::is_directory(folder_), "--thumbnails is not a folder", folder_,
            "give a folder with files 0.png, 1.png and so on");
}

bool Pictures::any() const { return data_->encoding() != data::Encoding::features || !folder_.empty(); }

std::optional<PageImage> Pictures::from_folder(int64_t sample) const {
  const std::pair<const char*, const char*> kinds[] = {
      {".png", "image/png"}, {".jpg", "image/jpeg"}, {".jpeg", "image/jpeg"}};
  for (const auto& [ending, type] : kinds) {
    const std::string path = folder_ + "/" + std::to_string(sample) + ending;
    if (std::filesystem::is_regular_file(path)) return PageImage{type, io::read_whole_file(path)};
  }
  return std::nullopt;
}

std::optional<PageImage> Pictures::of(int64_t sample, ImageSize size) const {
  if (data_->encoding() == data::Encoding::features) return folder_.empty() ? std::nullopt : from_folder(sample);
  if (data_->encoding() == data::Encoding::jpeg) {
    std::vector<uint8_t> bytes;
    data_->read(sample, bytes);
    const data::JpegHeader header = data::inspect_jpeg(bytes.data(), bytes.size());
    if (size == ImageSize::full || std::min(header.height, header.width) <= kSmall)
      return PageImage{"image/jpeg", text_of(bytes)};
  }
  data::Picture picture = sample_picture(*data_, sample);
  if (size == ImageSize::small && std::min(picture.height, picture.width) > kSmall) {
    int32_t height = 0, width = 0;
    data::shorter_side_size(picture.height, picture.width, kSmall, &height, &width);
    picture = data::resize_picture(picture, height, width);
  }
  return as_png(picture);
}

}  // namespace pal::launch
