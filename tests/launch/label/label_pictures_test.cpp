// label_pictures: samples as browsers show them: pixels, JPEG files, thumbnails beside features, and what is broken.
#include <gtest/gtest.h>

#include "core/data/image/jpeg_header.h"
#include "core/data/image/png.h"
#include "core/data/shard_writer.h"
#include "launch/label/pictures.h"
#include "tests/core/data/data_files.h"
#include "tests/core/data/image/jpeg_files.h"

namespace pal::launch {
namespace {

const uint8_t* bytes_of(const std::string& text) { return reinterpret_cast<const uint8_t*>(text.data()); }
std::string text_of_bytes(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::shared_ptr<const data::Dataset> shard_of(const std::string& path, const data::ShardSpec& spec,
                                              const std::vector<std::vector<uint8_t>>& images) {
  data::ShardWriter writer(path, spec);
  for (const auto& image : images) writer.append({image.data(), image.size(), -1, "x"});
  writer.finish();
  writer.publish();
  return data::Dataset::open(path);
}

TEST(LabelPictures, PixelsBecomePngFiles) {
  const TestFolder folder;
  data::ShardSpec spec;
  spec.shape = {12, 10, 1};
  const std::vector<uint8_t> gray = data::test_picture(12, 10, 1, 1);
  const Pictures pictures(shard_of(folder / "a.h5", spec, {gray}), "");
  EXPECT_TRUE(pictures.any());
  const PageImage image = *pictures.of(0, ImageSize::small);
  EXPECT_EQ(image.type, "image/png");
  std::vector<uint8_t> pixels;
  const data::PngHeader header = data::decode_png(bytes_of(image.bytes), image.bytes.size(), pixels);
  EXPECT_EQ(std::pair(header.height, header.width), std::pair(12, 10));
  for (size_t i = 0; i < gray.size(); ++i) EXPECT_EQ(pixels[i * static_cast<size_t>(header.channels)], gray[i]);
}

TEST(LabelPictures, JpegFilesAreServedUnchangedAndLargeOnesSmaller) {
  const TestFolder folder;
  data::ShardSpec spec;
  spec.encoding = data::Encoding::jpeg;
  const std::vector<uint8_t> small = data::test_jpeg(data::test_picture(90, 70, 3, 1), 90, 70),
                             large = data::test_jpeg(data::test_picture(700, 1000, 3, 2), 700, 1000);
  const std::vector<uint8_t> cut(small.begin(), small.end() - 200), none = {'n', 'o'};
  const Pictures pictures(shard_of(folder / "a.h5", spec, {small, large, cut, none}), "");
  for (const ImageSize size : {ImageSize::small, ImageSize::full}) {
    EXPECT_EQ(pictures.of(0, size)->type, "image/jpeg");
    EXPECT_EQ(pictures.of(0, size)->bytes, text_of_bytes(small));
    EXPECT_THROW(pictures.of(2, size), Error) << "cut";
    EXPECT_THROW(pictures.of(3, size), Error) << "no image";
  }
  EXPECT_EQ(pictures.of(1, ImageSize::full)->bytes, text_of_bytes(large));
  const PageImage shrunk = *pictures.of(1, ImageSize::small);
  EXPECT_EQ(shrunk.type, "image/png");
  const data::PngHeader header = data::inspect_png(bytes_of(shrunk.bytes), shrunk.bytes.size());
  EXPECT_EQ(std::pair(header.height, header.width), std::pair(320, 457));
}

TEST(LabelPictures, FeaturesHaveThumbnailsOrNone) {
  const TestFolder folder;
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
  data::write_file(folder / "f.npy", std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' +
                                         header + std::string(24, '\0'));
  const auto data = data::Dataset::open(folder / "f.npy");
  EXPECT_FALSE(Pictures(data, "").any());
  EXPECT_FALSE(Pictures(data, "").of(0, ImageSize::small));
  std::filesystem::create_directory(folder / "thumbs");
  data::write_file(folder / "thumbs/0.png", "a png");
  data::write_file(folder / "thumbs/2.jpeg", "a jpeg");
  const Pictures pictures(data, folder / "thumbs");
  EXPECT_TRUE(pictures.any());
  EXPECT_EQ(pictures.of(0, ImageSize::small)->type, "image/png");
  EXPECT_EQ(pictures.of(0, ImageSize::full)->bytes, "a png");
  EXPECT_FALSE(pictures.of(1, ImageSize::small)) << "the page shows its number";
  EXPECT_EQ(pictures.of(2, ImageSize::small)->type, "image/jpeg");
  EXPECT_NE(data::error_of(Exit::usage, [&] { Pictures(data, folder / "nothing"); }).find("not a folder"),
            std::string::npos);
}

}  // namespace
}  // namespace pal::launch
