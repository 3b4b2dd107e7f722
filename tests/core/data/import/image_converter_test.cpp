// image_converter: every odd file is copied, converted or left out, with its reason; pictures are turned and scaled.
#include "core/data/import/image_converter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/data/image/png.h"
#include "core/data/import/import_internal.h"
#include "core/io/csv.h"
#include "tests/core/data/data_files.h"
#include "tests/core/data/image/jpeg_files.h"

namespace pal::data {
namespace {

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string odd(const ConvertedImage& taken) {
  std::string all;
  for (const Oddity& oddity : taken.oddities)
    all += std::string(treatment_name(oddity.treatment)) + " " + oddity.what + "|";
  return all;
}

std::vector<uint8_t> plain_jpeg(int32_t height = 40, int32_t width = 60, const JpegForm& form = {}) {
  const int channels = form.pixels == JCS_GRAYSCALE ? 1 : form.pixels == JCS_CMYK ? 4 : 3;
  return test_jpeg(test_picture(height, width, channels, 3), height, width, form);
}

std::vector<uint8_t> cut_to(std::vector<uint8_t> file, size_t bytes) {
  file.resize(bytes);
  return file;
}

TEST(ImageConverter, JpegFilesAreCopiedUnchanged) {
  ImageConverter intake({});
  JpegForm gray, progressive;
  gray.pixels = JCS_GRAYSCALE;
  gray.h = gray.v = 1;
  progressive.progressive = true;
  ConvertedImage taken = intake.take(plain_jpeg(), "a/b.JPEG");
  EXPECT_EQ(taken.bytes, plain_jpeg());
  EXPECT_EQ(odd(taken), "");
  EXPECT_EQ(odd(intake.take(plain_jpeg(40, 60, progressive), "x.jpg")), "");
  taken = intake.take(plain_jpeg(9, 7, gray), "x.jpg");
  EXPECT_EQ(taken.bytes, plain_jpeg(9, 7, gray));
  EXPECT_EQ(odd(taken), "kept gray JPEG file|");
  EXPECT_EQ(odd(intake.take(plain_jpeg(1, 1), "x.jpg")), "kept 1x1 image|");
  EXPECT_EQ(odd(intake.take(plain_jpeg(), "x.png")), "kept JPEG named as PNG|");
  std::vector<uint8_t> tail = plain_jpeg();
  tail.push_back('x');
  taken = intake.take(tail, "x");
  EXPECT_EQ(taken.bytes, tail);
  EXPECT_EQ(odd(taken), "kept bytes behind the end of a JPEG file|");
}

TEST(ImageConverter, WhatCannotBeReadIsLeftOutWithItsReason) {
  ImageConverter intake({});
  const auto reason = [&](const std::vector<uint8_t>& file, const std::string& name) {
    const ConvertedImage taken = intake.take(file, name);
    EXPECT_TRUE(taken.bytes.empty()) << name;
    return odd(taken);
  };
  EXPECT_TRUE(contains(reason({}, "x.jpg"), "left out file without bytes"));
  EXPECT_TRUE(contains(reason(cut_to(plain_jpeg(), 700), "x.jpg"), "left out cut JPEG file: it ends at byte 700"));
  EXPECT_TRUE(contains(reason(bytes_of("<html>"), "x.jpg"), "left out unknown image format"));
  EXPECT_TRUE(contains(reason(bytes_of("GIF89a......"), "x.jpg"), "left out GIF is not read: x.jpg; convert it"));
  EXPECT_TRUE(
      contains(reason(bytes_of(std::string("RIFF\0\0\0\0WEBPVP8 ", 16)), "x.webp"), "left out WebP is not read"));
  EXPECT_TRUE(contains(reason(bytes_of(std::string("II*\0....", 8)), "x.tif"), "left out TIFF is not read"));
  const std::vector<uint8_t> pixels = test_picture(30, 30, 3, 1), png = encode_png(pixels.data(), 30, 30, 3);
  for (size_t size = 8; size < png.size(); ++size) EXPECT_NE(reason(cut_to(png, size), "x.png"), "") << size;
  std::vector<uint8_t> damaged = png;
  damaged[damaged.size() / 2] ^= 16;
  EXPECT_TRUE(contains(reason(damaged, "x.png"), "left out damaged PNG file")) << reason(damaged, "x.png");
  std::vector<uint8_t> huge = png;
  std::fill_n(huge.begin() + 16, 8, uint8_t{0x7F});
  EXPECT_TRUE(contains(reason(huge, "x.png"), "left out image with too many pixels"));
}

TEST(ImageConverter, CmykAndRotationAreConverted) {
  ImageConverter intake({});
  JpegDecoder decoder;
  std::vector<uint8_t> before, after;
  JpegForm form;
  form.pixels = JCS_CMYK;
  form.h = form.v = 1;
  ConvertedImage taken = intake.take(plain_jpeg(24, 40, form), "x.jpg");
  EXPECT_EQ(odd(taken), "converted CMYK JPEG file|");
  EXPECT_EQ(inspect_jpeg(taken.bytes.data(), taken.bytes.size()).components, 3);
  decoder.decode(plain_jpeg(24, 40, form), before);
  decoder.decode(taken.bytes, after);
  double sum = 0;
  for (size_t i = 0; i < before.size(); ++i) sum += std::abs(int{before[i]} - int{after[i]});
  EXPECT_LT(sum / static_cast<double>(before.size()), 4);

  form = {};
  form.exif = exif_orientation(6, true);
  taken = intake.take(plain_jpeg(24, 40, form), "x.jpg");
  EXPECT_EQ(odd(taken), "converted Exif rotation|");
  const JpegHeader header = inspect_jpeg(taken.bytes.data(), taken.bytes.size());
  EXPECT_EQ(header.height, 40);
  EXPECT_EQ(header.width, 24);
  EXPECT_EQ(header.orientation, 1);

  for (int orientation = 2; orientation <= 8; ++orientation) {
    form.exif = exif_orientation(orientation, true);
    Picture lying{24, 40, 3, {}};
    decoder.decode(plain_jpeg(24, 40, form), lying.pixels);
    decoder.decode(intake.take(plain_jpeg(24, 40, form), "x.jpg").bytes, after);
    const Picture upright = turn_upright(lying, orientation);
    ASSERT_EQ(after.size(), upright.pixels.size());
    double apart = 0;
    for (size_t i = 0; i < after.size(); ++i) apart += std::abs(int{after[i]} - int{upright.pixels[i]});
    EXPECT_LT(apart / static_cast<double>(after.size()), 4) << "orientation " << orientation;
  }
}

// The markers are complete, the coded data are not: only a decode detects that.
TEST(ImageConverter, CodedDataThatEndEarlyAreLeftOutWhereTheyAreDecoded) {
  std::vector<uint8_t> file = plain_jpeg(48, 64);
  file.erase(file.end() - static_cast<ptrdiff_t>(file.size() / 4), file.end() - 2);
  ConvertOptions smaller;
  smaller.resize_shorter = 32;
  ImageConverter intake(smaller);
  const ConvertedImage taken = intake.take(file, "x.jpg");
  EXPECT_TRUE(taken.bytes.empty());
  EXPECT_TRUE(contains(odd(taken), "left out damaged JPEG data")) << odd(taken);
}

TEST(ImageConverter, PngBecomesJpegOrPixels) {
  const std::vector<uint8_t> pixels = test_picture(20, 30, 3, 5), png = encode_png(pixels.data(), 20, 30, 3);
  ImageConverter to_jpeg({});
  EXPECT_EQ(odd(to_jpeg.take(png, "x.JPEG")), "kept PNG named as JPEG|converted PNG file|");
  ConvertOptions options;
  options.encoding = Encoding::raw;
  options.shape = {20, 30, 3};
  ImageConverter to_raw(options);
  EXPECT_EQ(to_raw.take(png, "x.png").bytes, pixels);
  const std::vector<uint8_t> gray = test_picture(20, 30, 1, 5);
  const std::vector<uint8_t> repeated = to_raw.take(encode_png(gray.data(), 20, 30, 1), "x.png").bytes;
  ASSERT_EQ(repeated.size(), 3 * gray.size());
  for (size_t i = 0; i < repeated.size(); ++i) EXPECT_EQ(repeated[i], gray[i / 3]);
  EXPECT_TRUE(contains(odd(to_raw.take(encode_png(pixels.data(), 30, 20, 3), "x.png")),
                       "left out another size than the rest of the data set: 20 x 30 x 3"));
}

TEST(ImageConverter, LargerImagesAreMadeSmaller) {
  ConvertOptions options;
  options.resize_shorter = 32;
  ImageConverter intake(options);
  JpegDecoder decoder;
  for (const auto& [height, width, new_height, new_width] :
       {std::array{200, 300, 32, 48}, {300, 200, 48, 32}, {64, 64, 32, 32}, {33, 999, 32, 969}}) {
    const ConvertedImage taken = intake.take(plain_jpeg(height, width), "x.jpg");
    const JpegHeader header = inspect_jpeg(taken.bytes.data(), taken.bytes.size());
    EXPECT_EQ(header.height, new_height);
    EXPECT_EQ(header.width, new_width);
  }
  EXPECT_EQ(intake.take(plain_jpeg(32, 40), "x.jpg").bytes, plain_jpeg(32, 40));
  EXPECT_EQ(intake.take(plain_jpeg(20, 40), "x.jpg").bytes, plain_jpeg(20, 40));

  // Near the reduced picture of a whole decode: the error of the scaled decode is small.
  std::vector<uint8_t> small;
  Picture whole{200, 300, 3, {}};
  decoder.decode(plain_jpeg(200, 300), whole.pixels);
  const Picture expected = resize_picture(whole, 32, 48);
  decoder.decode(intake.take(plain_jpeg(200, 300), "x.jpg").bytes, small);
  ASSERT_EQ(small.size(), expected.pixels.size());
  double sum = 0;
  for (size_t i = 0; i < small.size(); ++i) sum += std::abs(int{small[i]} - int{expected.pixels[i]});
  EXPECT_LT(sum / static_cast<double>(small.size()), 2);
}

// Against the definition: each output is the weighted mean of the inputs below a triangle.
TEST(Picture, ResizeIsTheTriangleFilter) {
  const uint64_t seed = 11;
  Random random(seed, Purpose::noise);
  for (int trial = 0; trial < 40; ++trial) {
    const auto height = static_cast<int32_t>(1 + random.below(60)), width = static_cast<int32_t>(1 + random.below(60));
    const auto new_height = static_cast<int32_t>(1 + random.below(60)),
               new_width = static_cast<int32_t>(1 + random.below(60));
    const Picture picture{height, width, 1, test_picture(height, width, 1, seed + static_cast<uint64_t>(trial))};
    const Picture out = resize_picture(picture, new_height, new_width);
    const auto weight = [](int32_t j, int32_t i, int32_t from, int32_t to) {
      const double scale = static_cast<double>(from) / to, support = std::max(scale, 1.0);
      return std::max(0.0, 1 - std::abs(j + 0.5 - (i + 0.5) * scale) / support);
    };
    for (int32_t y = 0; y < new_height; ++y) {
      for (int32_t x = 0; x < new_width; ++x) {
        double sum = 0, weights = 0;
        for (int32_t v = 0; v < height; ++v) {
          for (int32_t u = 0; u < width; ++u) {
            const double w = weight(v, y, height, new_height) * weight(u, x, width, new_width);
            sum += w * picture.pixels[static_cast<size_t>(v * width + u)];
            weights += w;
          }
        }
        ASSERT_NEAR(out.pixels[static_cast<size_t>(y * new_width + x)], sum / weights, 1.1)
            << "seed " << seed << " trial " << trial;
      }
    }
  }
}

// Colors take another code path than gray pixels, and the channels are independent.
TEST(Picture, ResizeOfColorsIsThatOfEachChannel) {
  const uint64_t seed = 12;
  Random random(seed, Purpose::noise);
  for (int trial = 0; trial < 200; ++trial) {
    const auto height = static_cast<int32_t>(1 + random.below(40)), width = static_cast<int32_t>(1 + random.below(40));
    const auto new_height = static_cast<int32_t>(1 + random.below(40)),
               new_width = static_cast<int32_t>(1 + random.below(40));
    const Picture picture{height, width, 3, test_picture(height, width, 3, seed + static_cast<uint64_t>(trial))};
    const Picture out = resize_picture(picture, new_height, new_width);
    ASSERT_EQ(out.pixels.size(), static_cast<size_t>(3 * new_height * new_width));
    for (size_t c = 0; c < 3; ++c) {
      Picture gray{height, width, 1, {}};
      for (size_t i = c; i < picture.pixels.size(); i += 3) gray.pixels.push_back(picture.pixels[i]);
      const Picture expected = resize_picture(gray, new_height, new_width);
      for (size_t i = 0; i < expected.pixels.size(); ++i) {
        ASSERT_EQ(out.pixels[3 * i + c], expected.pixels[i])
            << "seed " << seed << " trial " << trial << " channel " << c << " pixel " << i;
      }
    }
  }
  const Picture plain{7, 9, 3, std::vector<uint8_t>(7 * 9 * 3, 201)};
  EXPECT_EQ(resize_picture(plain, 5, 4).pixels, std::vector<uint8_t>(5 * 4 * 3, 201));
}

TEST(Picture, EightOrientations) {
  const Picture picture{2, 3, 1, {1, 2, 3, 4, 5, 6}};
  const std::vector<std::vector<uint8_t>> upright = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                                     {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                                     {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int o = 1; o <= 8; ++o) {
    const Picture turned = turn_upright(picture, o);
    EXPECT_EQ(turned.height, o >= 5 ? 3 : 2);
    EXPECT_EQ(turned.pixels, upright[static_cast<size_t>(o - 1)]) << o;
  }
}

TEST(Csv, QuotesHeadsAndLineEnds) {
  const TestFolder folder;
  write_file(folder / "a.csv",
             "\xEF\xBB\xBFlabel,Path,other\r\ncat,\"a, \"\"b\"\".jpg\",1\r\n\r\n,c.jpg\r\ndog,\"two\nlines.jpg\",x");
  const std::vector<io::NamedLabel> rows = io::read_manifest(folder / "a.csv").rows;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "a, \"b\".jpg");
  EXPECT_EQ(rows[0].label, "cat");
  EXPECT_EQ(rows[1].label, "");
  EXPECT_EQ(rows[2].name, "two\nlines.jpg");
  write_file(folder / "b.csv", "x.jpg, 3\ny.jpg\n");
  EXPECT_EQ(io::read_manifest(folder / "b.csv").rows[0].label, "3");
  EXPECT_EQ(io::read_manifest(folder / "b.csv").rows[1].label, "");
  write_file(folder / "c.csv", "a\nb,\"c");
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { io::read_manifest(folder / "c.csv"); }),
                       "c.csv: a quote is never closed; it begins in line 2"));
}

TEST(Csv, ColumnsByName) {
  const TestFolder folder;
  write_file(folder / "a.csv", "Image,Patient,site\nx.jpg,7,a\ny.jpg,8,b\n");
  const io::Manifest plain = io::read_manifest(folder / "a.csv");
  EXPECT_EQ(plain.label, "");
  EXPECT_EQ(plain.unused, (std::vector<std::string>{"Patient", "site"}));
  const io::Manifest column = io::read_manifest_column(folder / "a.csv:patient");
  EXPECT_EQ(column.label, "Patient");
  EXPECT_EQ(column.rows[1].label, "8");
  EXPECT_EQ(column.unused, (std::vector<std::string>{"site"}));
  EXPECT_EQ(io::read_manifest(folder / "a.csv", {"site", "image"}).rows[0].name, "a");
  EXPECT_TRUE(contains(error_of(Exit::data,
                                [&] {
                                  io::read_manifest(folder / "a.csv", {"", "age"});
                                }),
                       "no column of this name: age; its columns are: Image, Patient, site"));
  EXPECT_TRUE(contains(error_of(Exit::usage, [&] { io::read_manifest_column("meta.csv"); }), "FILE:COLUMN"));
}

TEST(Csv, FilesByName) {
  const io::NameIndex names({"train/a/1.jpg", "train/b/1.jpg", "train/b/2.jpg", "2", "x.1", "x.2"});
  EXPECT_EQ(names.find("train/b/1.jpg"), 1);
  EXPECT_EQ(names.find("b/1.jpg"), 1);
  EXPECT_EQ(names.find("photos/train/a/1.jpg"), 0);
  EXPECT_EQ(names.find("train/a/1"), 0);
  EXPECT_EQ(names.find("2.jpg"), 2);
  EXPECT_EQ(names.find("2"), 3);  // an equal name comes before the end of one
  EXPECT_EQ(names.find("x.2"), 5);
  EXPECT_EQ(names.find("1.jpg"), io::NameIndex::kAmbiguous);
  EXPECT_EQ(names.find("test/a/1.jpg"), io::NameIndex::kNone);
  EXPECT_EQ(names.find("y.jpg"), io::NameIndex::kNone);
}

TEST(Csv, LabelsByFile) {
  const io::LabelsByFile labels("m.csv", {{"a/1.jpg", "x"}, {"b/1.jpg", ""}, {"a/1.jpg", "x"}});
  EXPECT_EQ(*labels.find("photos/a/1.jpg"), "x");
  EXPECT_EQ(*labels.find("b/1.jpg"), "");
  EXPECT_EQ(labels.find("c/1.jpg"), nullptr);
  EXPECT_TRUE(
      contains(error_of(Exit::data, [&] { labels.find("1.jpg"); }), "m.csv: several rows match the file: 1.jpg"));
  EXPECT_TRUE(contains(error_of(Exit::data,
                                [] {
                                  io::LabelsByFile("m.csv", {{"a", "x"}, {"a", "y"}});
                                }),
                       "m.csv gives two labels for: a"));
}

TEST(Csv, NumbersStayClassesOnlyWhenTheyAreDense) {
  const auto classes = [](const std::vector<std::string>& texts) { return LabelNames(texts).classes(); };
  EXPECT_EQ(classes({"2", "0", "-1", ""}), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(classes({"11", "3"}).size(), 12u);
  EXPECT_EQ(classes({"100", "9", "100000"}), (std::vector<std::string>{"9", "100", "100000"}));
  EXPECT_EQ(LabelNames({"100", "9", "100000"}).label("100"), 1);
  EXPECT_EQ(classes({"9223372036854775807", "0"}).size(), 2u);
  EXPECT_EQ(classes({"b", "10", "9"}), (std::vector<std::string>{"10", "9", "b"}));
}

// A spreadsheet program would execute them.
TEST(Csv, FormulasAreNeutralizedAndReadBack) {
  EXPECT_EQ(io::csv_field("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
  EXPECT_EQ(io::csv_field("@SUM(1,2)"), "\"'@SUM(1,2)\"");
  for (const char* number : {"-1", "+2.5", "-3e4", "7"}) EXPECT_EQ(io::csv_field(number), number);
  for (const std::string text : {"=1+1", "+x", "-a.jpg", "@a", "\ttab", "'=x", "'plain", "''@", "", "-", "a,\"b\""}) {
    const TestFolder folder;
    write_file(folder / "a.csv", "x," + io::csv_field(text) + "\n");
    EXPECT_EQ(io::plain_field(io::read_csv(folder / "a.csv")[0][1]), text);
  }
}

TEST(Taxonomy, FromPairs) {
  const TestFolder folder;
  write_file(folder / "t.csv", "cat,mammal\ndog,mammal\nmammal,animal\nbee,insect\ninsect,animal\nunused,animal\n");
  const Taxonomy tree = read_taxonomy(folder / "t.csv", {"bee", "cat", "dog", "stone"});
  EXPECT_EQ(tree.parents, (std::vector<int64_t>{4, 5, 5, -1, 6, 6, -1}));
  EXPECT_EQ(tree.names, (std::vector<std::string>{"insect", "mammal", "animal"}));
  const auto error = [&](const std::string& text) {
    write_file(folder / "e.csv", text);
    return error_of(Exit::data, [&] { read_taxonomy(folder / "e.csv", {"cat", "dog"}); });
  };
  EXPECT_TRUE(contains(error("cat,a\na,b\nb,a\n"), "has a cycle"));
  EXPECT_TRUE(contains(error("cat,a\ncat,b\n"), "gives two parents for: cat"));
  EXPECT_TRUE(contains(error("cat,dog\n"), "a class is the parent of another class: dog"));
  EXPECT_TRUE(contains(error("x,y\n"), "names none of the classes"));
}

TEST(Taxonomy, FromWordNet) {
  if (!std::filesystem::exists("/usr/share/wordnet/data.noun")) GTEST_SKIP() << "wordnet-base is not installed";
  const Taxonomy tree = read_taxonomy("wordnet", {"n01440764", "n02084071", "n02123045"});  // tench, dog, tabby
  ASSERT_EQ(tree.parents.size(), 3 + tree.names.size());
  std::vector<std::string> path;
  for (int64_t node = tree.parents[2]; node >= 0; node = tree.parents[static_cast<size_t>(node)])
    path.push_back(tree.names[static_cast<size_t>(node) - 3]);
  ASSERT_GE(path.size(), 5u);
  EXPECT_EQ(path[0], "n02121808 domestic_cat");
  EXPECT_EQ(path.back(), "n00001740 entity");
  EXPECT_TRUE(contains(error_of(Exit::data, [] { read_taxonomy("wordnet", {"n01440765"}); }), "not a noun of "));
  EXPECT_TRUE(contains(error_of(Exit::data, [] { read_taxonomy("wordnet", {"tench"}); }), "not a noun of "));
  EXPECT_TRUE(contains(error_of(Exit::data, [] { read_taxonomy("wordnet:/nowhere", {"n01440764"}); }), "wordnet-base"));
  EXPECT_TRUE(
      contains(error_of(Exit::data, [] { read_taxonomy("wordnet:/dev/zero", {"n01440764"}); }), "regular file"));
}

}  // namespace
}  // namespace pal::data
