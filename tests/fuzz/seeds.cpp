// seeds: writes the binary seeds: JPEG files of every kind that libjpeg writes, PNG files, shards, features.
//
// usage: seeds FOLDER     (with a folder for each target)
#include <cstdio>
#include <string>

#include "core/data/image/png.h"
#include "core/data/shard_writer.h"
#include "core/graph/graph_files.h"
#include "core/io/files.h"
#include "core/io/h5.h"
#include "tests/core/data/image/jpeg_files.h"

namespace {

using pal::data::test_jpeg;
using pal::data::test_picture;

void put(const std::string& path, const std::vector<uint8_t>& bytes) {
  pal::io::write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void write_pictures(const std::string& folder) {
  const auto put_jpeg = [&](const char* name, int channels, const pal::data::JpegForm& form) {
    put(folder + "/" + name, test_jpeg(test_picture(24, 17, channels, 1), 24, 17, form));
  };
  put_jpeg("plain.jpg", 3, {});
  put_jpeg("full_chroma.jpg", 3, {.h = 1, .v = 1});
  put_jpeg("progressive.jpg", 3, {.progressive = true});
  put_jpeg("restart.jpg", 3, {.restart = 1});
  put_jpeg("exif.jpg", 3, {.exif = pal::data::exif_orientation(6, true)});
  put_jpeg("gray.jpg", 1, {.pixels = JCS_GRAYSCALE, .h = 1, .v = 1});
  put_jpeg("cmyk.jpg", 4, {.pixels = JCS_CMYK, .h = 1, .v = 1, .adobe = true});
}

void write_pngs(const std::string& folder) {
  for (const int channels : {1, 3}) {
    put(folder + "/" + std::to_string(channels) + ".png",
        pal::data::encode_png(test_picture(9, 7, channels, 2).data(), 9, 7, channels));
  }
}

void write_shards(const std::string& folder) {
  pal::data::ShardSpec spec;
  spec.shape = {4, 4, 1};
  spec.classes = {"a", "b"};
  spec.parents = {2, 2, -1};
  spec.parent_names = {"root"};
  const std::vector<uint8_t> raw = test_picture(4, 4, 1, 3), jpeg = test_jpeg(test_picture(8, 8, 3, 4), 8, 8);
  pal::data::ShardWriter labeled(folder + "/labeled.h5", spec);
  for (const int64_t label : {0, 1, -1}) labeled.append({raw.data(), raw.size(), label, "x"});
  labeled.finish();
  labeled.publish();
  pal::data::ShardSpec plain;
  plain.encoding = pal::data::Encoding::jpeg;
  pal::data::ShardWriter files(folder + "/files.h5", plain);
  for (const char* id : {"one", "two"}) files.append({jpeg.data(), jpeg.size(), -1, id});
  files.finish();
  files.publish();
}

void write_features(const std::string& path) {
  const std::vector<float> rows = {0, 1, 2, 3, 4, 5};
  pal::io::h5::File out = pal::io::h5::File::create(path, path);
  out.handle().write_at(out.end(), rows.data(), rows.size() * sizeof(float));
  out.describe("features", pal::io::h5::Type::f32, 6, sizeof(float), 2);
  out.write("labels", std::vector<int64_t>{0, 1, -1});
  out.close();
}

// Pixels of a gray image, and the file of another, each in the group of its class.
void write_images(const std::string& path) {
  const std::vector<uint8_t> pixels = test_picture(4, 3, 1, 5), file = test_jpeg(test_picture(8, 8, 3, 6), 8, 8);
  pal::io::h5::File out = pal::io::h5::File::create(path, path);
  out.make_group("a");
  out.make_group("b");
  out.handle().write_at(out.end(), pixels.data(), pixels.size());
  out.describe("a/pixels", pal::io::h5::Type::u8, 12, 1, 4);
  out.write("b/file", file);
  out.close();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: seeds FOLDER\n"), 2;
  const std::string folder = arguments[1];
  write_pictures(folder + "/jpeg");
  write_shards(folder + "/shard");
  write_pngs(folder + "/png");
  write_features(folder + "/features/good.h5");
  write_images(folder + "/images_h5/good.h5");
  pal::graph::write_pairs(folder + "/pairs_h5/good.h5",
                          pal::graph::WeightedEdges(10, {{0, 1, 1.0}, {2, 9, -0.5}}, "the seed"));
}
