// jpeg: the header check refuses bad files, a decoded part equals that part of the whole picture, colors and scales are
// libjpeg's.
#include "core/data/image/jpeg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/data/data_files.h"
#include "tests/core/data/image/jpeg_files.h"

namespace pal::data {
namespace {

// Replaces the bytes after the frame marker.
std::vector<uint8_t> with_frame(std::vector<uint8_t> file, size_t at, std::vector<uint8_t> bytes) {
  for (size_t i = 2; i + 1 < file.size(); ++i) {
    if (file[i] != 0xFF || (file[i + 1] != 0xC0 && file[i + 1] != 0xC2)) continue;
    std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<ptrdiff_t>(i + 4 + at));
    return file;
  }
  ADD_FAILURE() << "no frame";
  return file;
}

std::string gate_error(const std::vector<uint8_t>& file, JpegWalk walk = JpegWalk::whole,
                       const ImageLimits& limits = {}) {
  return error_of(Exit::data, [&] { inspect_jpeg(file.data(), file.size(), walk, limits); });
}

TEST(JpegHeader, ReadsThePropertiesOfTheFile) {
  const std::vector<uint8_t> color = test_picture(40, 65, 3, 1);
  std::vector<uint8_t> file = test_jpeg(color, 40, 65);
  JpegHeader header = inspect_jpeg(file.data(), file.size());
  EXPECT_EQ(header.height, 40);
  EXPECT_EQ(header.width, 65);
  EXPECT_EQ(header.components, 3);
  EXPECT_EQ(header.scans, 1);
  EXPECT_FALSE(header.progressive);
  EXPECT_EQ(header.orientation, 1);
  EXPECT_EQ(header.end, file.size());
  file.insert(file.end(), {0xFF, 0xD8, 1, 2, 3});  // bytes behind the end are ignored
  EXPECT_EQ(inspect_jpeg(file.data(), file.size()).end, file.size() - 5);

  JpegForm form;
  form.progressive = true;
  form.restart = 3;
  file = test_jpeg(color, 40, 65, form);
  header = inspect_jpeg(file.data(), file.size());
  EXPECT_TRUE(header.progressive);
  EXPECT_EQ(header.scans, 10);
  header = inspect_jpeg(file.data(), file.size(), JpegWalk::to_first_scan);
  EXPECT_EQ(header.scans, 1);
  EXPECT_EQ(header.end, 0u);

  form = {};
  form.pixels = JCS_GRAYSCALE;
  form.h = form.v = 1;
  file = test_jpeg(test_picture(9, 7, 1, 2), 9, 7, form);
  EXPECT_EQ(inspect_jpeg(file.data(), file.size()).components, 1);
  form.pixels = JCS_CMYK;
  file = test_jpeg(test_picture(9, 7, 4, 2), 9, 7, form);
  EXPECT_EQ(inspect_jpeg(file.data(), file.size()).components, 4);
}

// True only for files that every decoder reads as Y, Cb, Cr; for others decoders and libjpeg may differ.
TEST(JpegHeader, RecognizesFilesThatAreCertainlyYCbCr) {
  const auto ycc = [](const std::vector<uint8_t>& file) {
    return inspect_jpeg(file.data(), file.size(), JpegWalk::to_first_scan).ycc;
  };
  const std::vector<uint8_t> color = test_picture(16, 16, 3, 1), plain = test_jpeg(color, 16, 16);
  JpegForm adobe, rgb, gray, cmyk;
  adobe.adobe = rgb.plain_rgb = true;
  rgb.h = rgb.v = 1;
  gray.pixels = JCS_GRAYSCALE;
  cmyk.pixels = JCS_CMYK;
  EXPECT_TRUE(ycc(plain));
  EXPECT_TRUE(ycc(test_jpeg(color, 16, 16, adobe)));
  EXPECT_FALSE(ycc(test_jpeg(color, 16, 16, rgb)));
  EXPECT_FALSE(ycc(with_frame(test_jpeg(color, 16, 16, rgb), 6, {1, 0x11, 0, 2, 0x11, 0, 3})));  // the marker alone
  EXPECT_FALSE(ycc(with_frame(plain, 6, {0, 0x22, 0, 1, 0x11, 1, 2})));                          // the numbers alone
  EXPECT_FALSE(ycc(test_jpeg(test_picture(16, 16, 1, 1), 16, 16, gray)));
  EXPECT_FALSE(ycc(test_jpeg(test_picture(16, 16, 4, 1), 16, 16, cmyk)));
}

TEST(JpegHeader, ReadsTheOrientationInBothByteOrders) {
  const std::vector<uint8_t> pixels = test_picture(8, 8, 3, 1);
  for (const bool little : {false, true}) {
    for (int value = 1; value <= 8; ++value) {
      JpegForm form;
      form.exif = exif_orientation(value, little);
      const std::vector<uint8_t> file = test_jpeg(pixels, 8, 8, form);
      EXPECT_EQ(inspect_jpeg(file.data(), file.size()).orientation, value);
    }
  }
  for (size_t size = 0; size < 32; ++size) {  // cut Exif is no Exif
    JpegForm form;
    form.exif = exif_orientation(6, true).substr(0, size);
    const std::vector<uint8_t> file = test_jpeg(pixels, 8, 8, form);
    const int found = inspect_jpeg(file.data(), file.size()).orientation;
    EXPECT_TRUE(found == 1 || (found == 6 && size >= 26)) << size;
  }
}

TEST(JpegHeader, RefusesWithAReason) {
  const std::vector<uint8_t> file = test_jpeg(test_picture(40, 40, 3, 1), 40, 40);
  EXPECT_TRUE(contains(gate_error({}), "not a JPEG file"));
  EXPECT_TRUE(contains(gate_error({0x89, 'P', 'N', 'G'}), "not a JPEG file"));
  EXPECT_TRUE(contains(gate_error(with_frame(file, 1, {0, 0})), "image without pixels: 40 x 0"));
  EXPECT_TRUE(contains(gate_error(with_frame(file, 1, {0xFF, 0xDC, 0xFF, 0xDC})),
                       "too many pixels: 65500 x 65500; at most 134217728"));
  EXPECT_TRUE(contains(gate_error(with_frame(file, 1, {0x20, 0, 0x20, 0})),
                       "the header claims a picture that the file cannot hold: 8192 x 8192 in "));
  EXPECT_TRUE(contains(gate_error(with_frame(file, 0, {12})), "another depth than 8 bits: 12"));
  EXPECT_TRUE(contains(gate_error(with_frame(file, 5, {2})), "impossible number of components: 2"));
  EXPECT_TRUE(contains(gate_error(with_frame(file, 5, {1})), "length of its frame"));
  EXPECT_TRUE(contains(gate_error(with_frame(file, 7, {0x52})), "sampling factors"));
  std::vector<uint8_t> lossless = file;
  for (size_t i = 2; i + 1 < lossless.size(); ++i) {
    if (lossless[i] == 0xFF && lossless[i + 1] == 0xC0) lossless[i + 1] = 0xC3;
  }
  EXPECT_TRUE(contains(gate_error(lossless), "lossless or hierarchical"));
  EXPECT_TRUE(contains(gate_error(file, JpegWalk::whole, {1599, 100}), "too many pixels: 40 x 40"));
  EXPECT_EQ(gate_error(file, JpegWalk::whole, {1600, 100}), "");
  JpegForm form;
  form.progressive = true;
  const std::vector<uint8_t> progressive = test_jpeg(test_picture(40, 40, 3, 1), 40, 40, form);
  EXPECT_TRUE(contains(gate_error(progressive, JpegWalk::whole, {1600, 9}), "too many scans: 10; at most 9"));
  EXPECT_EQ(gate_error(progressive, JpegWalk::whole, {1600, 10}), "");
  JpegDecoder strict({1600, 9});
  std::vector<uint8_t> rgb;
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { strict.decode(progressive, rgb); }), "too many scans"));
}

TEST(JpegHeader, EveryCutIsDetected) {
  JpegForm form;
  for (const bool progressive : {false, true}) {
    form.progressive = progressive;
    const std::vector<uint8_t> file = test_jpeg(test_picture(24, 24, 3, 1), 24, 24, form);
    for (size_t size = 0; size < file.size(); ++size) {
      // A vector of its own, so that sanitizers detect a read past its end.
      const std::vector<uint8_t> part(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_NE(gate_error(part), "") << size;
    }
  }
}

// Any part at any scale equals, pixel by pixel, the same part of the whole picture at that scale.
TEST(Jpeg, APartEqualsThatPartOfTheWhole) {
  const uint64_t seed = 17;
  Random random(seed, Purpose::noise);
  JpegDecoder decoder;
  std::vector<uint8_t> whole, part;
  for (int trial = 0; trial < 300; ++trial) {
    const auto height = static_cast<int32_t>(1 + random.below(120)),
               width = static_cast<int32_t>(1 + random.below(120));
    JpegForm form;
    form.h = 1 + static_cast<int>(random.below(2));
    form.v = 1 + static_cast<int>(random.below(2));
    form.progressive = random.below(3) == 0;
    const std::vector<uint8_t> file =
        test_jpeg(test_picture(height, width, 3, seed + static_cast<uint64_t>(trial)), height, width, form);
    JpegPart wanted;
    wanted.eighths = 1 + static_cast<int>(random.below(8));
    const DecodedJpeg all = decoder.decode(file.data(), file.size(), wanted, whole);
    ASSERT_EQ(all.box.height, scaled_side(height, wanted.eighths));
    ASSERT_EQ(all.box.width, scaled_side(width, wanted.eighths));
    JpegBox& box = wanted.box;
    box.top = static_cast<int32_t>(random.below(static_cast<uint64_t>(all.height)));
    box.left = static_cast<int32_t>(random.below(static_cast<uint64_t>(all.width)));
    box.height = 1 + static_cast<int32_t>(random.below(static_cast<uint64_t>(all.height - box.top)));
    box.width = 1 + static_cast<int32_t>(random.below(static_cast<uint64_t>(all.width - box.left)));
    const DecodedJpeg some = decoder.decode(file.data(), file.size(), wanted, part);
    ASSERT_EQ(some.box.top, box.top);
    ASSERT_EQ(some.box.height, box.height);
    ASSERT_LE(some.box.left, box.left);
    ASSERT_GE(some.box.left + some.box.width, box.left + box.width);
    ASSERT_EQ(part.size(), size_t(some.box.height) * size_t(some.box.width) * 3);
    int worst = 0;
    for (int32_t y = 0; y < box.height; ++y) {
      for (int32_t x = 0; x < box.width; ++x) {
        for (int32_t c = 0; c < 3; ++c) {
          const int a = part[static_cast<size_t>((y * some.box.width + x + box.left - some.box.left) * 3 + c)];
          const int b = whole[static_cast<size_t>(((y + box.top) * all.width + x + box.left) * 3 + c)];
          worst = std::max(worst, std::abs(a - b));
        }
      }
    }
    ASSERT_EQ(worst, 0) << "seed " << seed << " trial " << trial << ": " << height << " x " << width << " at "
                        << wanted.eighths << "/8, sampling " << form.h << form.v << " box " << box.top << ' '
                        << box.left << ' ' << box.height << ' ' << box.width;
  }
}

TEST(Jpeg, ColorsAndRoundTrip) {
  JpegDecoder decoder;
  std::vector<uint8_t> rgb;
  const std::vector<uint8_t> picture = test_picture(50, 70, 3, 4);
  const std::vector<uint8_t> file = encode_jpeg(picture.data(), 50, 70, 3, 98, Chroma::full);
  EXPECT_EQ(file, encode_jpeg(picture.data(), 50, 70, 3, 98, Chroma::full));
  EXPECT_EQ(decoder.decode(file, rgb).warning, "");
  ASSERT_EQ(rgb.size(), picture.size());
  double sum = 0;
  for (size_t i = 0; i < rgb.size(); ++i) sum += std::abs(int{rgb[i]} - int{picture[i]});
  EXPECT_LT(sum / static_cast<double>(rgb.size()), 1.5);
  EXPECT_LT(encode_jpeg(picture.data(), 50, 70, 3, 98, Chroma::halved).size(), file.size());

  const std::vector<uint8_t> gray = encode_jpeg(test_picture(9, 7, 1, 2).data(), 9, 7, 1, 95, Chroma::full);
  decoder.decode(gray, rgb);
  for (size_t i = 0; i < rgb.size(); i += 3) EXPECT_TRUE(rgb[i] == rgb[i + 1] && rgb[i] == rgb[i + 2]);

  // One color in CMYK, with and without Adobe's inversion: (1 − c)(1 − k).
  for (const bool adobe : {false, true}) {
    std::vector<uint8_t> cmyk;
    for (int i = 0; i < 16 * 16; ++i) cmyk.insert(cmyk.end(), {40, 80, 120, 60});
    JpegForm form;
    form.pixels = JCS_CMYK;
    form.h = form.v = 1;
    form.adobe = adobe;
    decoder.decode(test_jpeg(cmyk, 16, 16, form), rgb);
    for (int c = 0; c < 3; ++c) {
      const int stored = 40 * (c + 1), expected = adobe ? stored * 60 / 255 : (255 - stored) * (255 - 60) / 255;
      EXPECT_NEAR(rgb[static_cast<size_t>(c)], expected, 2) << adobe << c;
    }
  }
}

TEST(Jpeg, DamageIsAWarningOrAnError) {
  JpegDecoder decoder;
  std::vector<uint8_t> rgb, file = test_jpeg(test_picture(64, 64, 3, 1), 64, 64);
  file.resize(file.size() / 2);
  EXPECT_TRUE(contains(decoder.decode(file, rgb).warning, "Premature end of JPEG file"));
  std::vector<uint8_t> table = test_jpeg(test_picture(64, 64, 3, 1), 64, 64);
  for (size_t i = 2; i + 1 < table.size(); ++i) {
    if (table[i] == 0xFF && table[i + 1] == 0xC4)
      std::fill_n(table.begin() + static_cast<ptrdiff_t>(i) + 5, 16, uint8_t{0xFF});
  }
  EXPECT_TRUE(
      contains(error_of(Exit::data, [&] { decoder.decode(table, rgb); }), "damaged JPEG file: Bogus Huffman table"));
  decoder.decode(test_jpeg(test_picture(64, 64, 3, 1), 64, 64), rgb);  // the decoder can be used again
  EXPECT_EQ(rgb.size(), 64u * 64u * 3u);
}

}  // namespace
}  // namespace pal::data
