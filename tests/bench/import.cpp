// import: `pal data import` of JPEG files against its bounds: the disk for copies, libjpeg for resized images.
//
// One process runs both sides in turns. Copies: the same threads read the same files, and one thread appends them to a
// file and syncs it. Resized images: the same threads only decode at the same scale and encode again.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/data/import/image_converter.h"
#include "core/data/import/import_internal.h"
#include "core/data/import/ordered_workers.h"
#include "core/io/crc32c.h"
#include "core/io/file_handle.h"
#include "core/io/files.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "launch/process/interleaved.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

using nlohmann::json;
using BenchClock = std::chrono::steady_clock;

double ms_since(BenchClock::time_point start) {
  return std::chrono::duration<double, std::milli>(BenchClock::now() - start).count();
}

// Waves with some noise, 348 to 500 pixels: near 60 kB a file, as ImageNet's at this size.
void make_files(const std::string& folder, int64_t images) {
  constexpr int64_t kDistinct = 64;  // the others are copies, at the same cost for disk and decoder
  for (int64_t k = 0; k < images; ++k) {
    const std::string path = fmt::format("{}/{:06}.jpg", folder, k);
    if (k >= kDistinct) {
      std::filesystem::copy_file(fmt::format("{}/{:06}.jpg", folder, k % kDistinct), path);
      continue;
    }
    Random random(1, Purpose::bench, 0, static_cast<uint64_t>(k));
    const auto height = static_cast<int32_t>(348 + random.below(153)),
               width = static_cast<int32_t>(348 + random.below(153));
    std::vector<uint8_t> pixels(size_t(height) * size_t(width) * 3);
    for (size_t i = 0; i < pixels.size(); ++i) {
      const double x = static_cast<double>(i / 3 % size_t(width)), y = static_cast<double>(i / 3 / size_t(width));
      const double c = static_cast<double>(i % 3);
      pixels[i] = static_cast<uint8_t>(110 + 60 * std::sin(x / 17 + c) + 50 * std::cos(y / 23 - c * x / 90) +
                                       24 * random.next_float());
    }
    const std::vector<uint8_t> file = data::encode_jpeg(pixels.data(), height, width, 3, 90, data::Chroma::halved);
    io::write_file_atomically(path, {reinterpret_cast<const char*>(file.data()), file.size()});
  }
}

data::Chroma chroma_of(const ImportBenchOptions& options) {
  return options.quality >= 90 ? data::Chroma::full : data::Chroma::halved;
}  // as an ImageConverter

struct ImportRig {
  const ImportBenchOptions& bench;
  data::ImportOptions options;
  std::unique_ptr<data::ImageSource> source;
  double bytes = 0;

  int64_t images() const { return static_cast<int64_t>(source->images.size()); }

  void import_to(int32_t shorter) {
    data::ImportOptions o = options;
    o.resize_shorter = shorter;
    o.overwrite = data::Overwrite::replace;
    data::import_flat(o);
  }

  // The disk: several threads read, one writes and syncs.
  void copy() {
    io::FileHandle out = io::FileHandle::create(options.out + ".copy", options.out + ".copy");
    uint64_t at = 0;
    const auto worker = [&] {
      return [&](int64_t i) {
        std::vector<uint8_t> file;
        source->read(i, file);
        return file;
      };
    };
    data::ordered_for<std::vector<uint8_t>>(options.threads, 0, images(), 128, worker,
                                            [&](int64_t, std::vector<uint8_t> file) {
                                              out.write_at(at, file.data(), file.size());
                                              at += file.size();
                                            });
    out.sync();
  }

  // libjpeg: decode at the scale of the import, encode at the requested size.
  void codec(int32_t shorter) {
    const auto worker = [&] {
      return [&, decoder = std::make_shared<data::JpegDecoder>()](int64_t i) {
        std::vector<uint8_t> file, rgb;
        source->read(i, file);
        const data::JpegHeader header = data::inspect_jpeg(file.data(), file.size(), data::JpegWalk::to_first_scan);
        const int32_t side = std::min(header.height, header.width);
        data::JpegPart part;
        while (part.eighths > 1 && data::scaled_side(side, part.eighths - 1) >= shorter) --part.eighths;
        decoder->decode(file.data(), file.size(), part, rgb);
        int32_t height = 0, width = 0;
        data::shorter_side_size(header.height, header.width, shorter, &height, &width);
        if (side <= shorter) return int64_t{0};
        // The first bytes of the image, as many as the resized one has: garbage rows, but the same work for libjpeg.
        rgb.resize(std::max(rgb.size(), size_t(height) * size_t(width) * 3));
        return static_cast<int64_t>(
            data::encode_jpeg(rgb.data(), height, width, 3, bench.quality, chroma_of(bench)).size());
      };
    };
    data::ordered_for<int64_t>(options.threads, 0, images(), 128, worker, [](int64_t, int64_t) {});
  }
};

// CPU time of an import by stage, on one thread.
std::map<std::string, double> stage_seconds(const ImportRig& rig) {
  std::map<std::string, double> spent;
  std::vector<uint8_t> file;
  data::Picture picture;
  data::JpegDecoder decoder;
  const int32_t shorter = rig.bench.resize_shorter;
  const auto timed = [&](const char* stage, const auto& work) {
    const auto start = BenchClock::now();
    work();
    spent[stage] += ms_since(start) / 1e3;
  };
  for (int64_t i = 0; i < std::min<int64_t>(rig.images(), 300); ++i) {
    data::JpegHeader header;
    std::vector<uint8_t> small;
    timed("read", [&] { rig.source->read(i, file); });
    timed("gate", [&] { header = data::inspect_jpeg(file.data(), file.size()); });
    timed("checksum", [&] { io::crc32c(file.data(), file.size()); });
    const int32_t side = std::min(header.height, header.width);
    if (side <= shorter) continue;
    data::JpegPart part;
    while (part.eighths > 1 && data::scaled_side(side, part.eighths - 1) >= shorter) --part.eighths;
    timed("decode", [&] {
      const data::DecodedJpeg decoded = decoder.decode(file.data(), file.size(), part, picture.pixels);
      picture.height = decoded.height;
      picture.width = decoded.width;
    });
    int32_t height = 0, width = 0;
    data::shorter_side_size(header.height, header.width, shorter, &height, &width);
    data::Picture resized;
    timed("resize", [&] { resized = data::resize_picture(picture, height, width); });
    timed("encode", [&] {
      small = data::encode_jpeg(resized.pixels.data(), height, width, 3, rig.bench.quality, chroma_of(rig.bench));
    });
  }
  return spent;
}

}  // namespace

int bench_import(const ImportBenchOptions& options) {
  const launch::BenchFolder folder;
  ImportRig rig{options, {}, nullptr};
  rig.options.source = options.source.empty() ? folder.path + "/files" : options.source;
  rig.options.out = folder.path + "/x.h5";
  rig.options.threads = options.threads;
  rig.options.quality = options.quality;
  if (options.source.empty()) {
    std::filesystem::create_directory(rig.options.source);
    make_files(rig.options.source, options.images);
  }
  rig.source = data::list_source(rig.options);
  for (const data::SourceImage& image : rig.source->images) rig.bytes += static_cast<double>(image.bytes);
  fmt::print("{} files, {:.1f} MB, {} threads, {} turns of each side\n", rig.images(), rig.bytes / 1e6, options.threads,
             options.turns);

  struct Case {
    const char *name, *peer;
    std::function<void()> ours, theirs;
  };
  const Case cases[] = {{"copy", "read, write, sync", [&] { rig.import_to(0); }, [&] { rig.copy(); }},
                        {"resize", "libjpeg decode and encode", [&] { rig.import_to(options.resize_shorter); },
                         [&] { rig.codec(options.resize_shorter); }}};
  std::vector<std::vector<std::string>> rows = {
      {"import", "ms", "images/s", "MB/s", "bound", "ms", "share of its rate", "noise"}};
  json results = json::array();
  for (const Case& c : cases) {
    if (options.resize_shorter == 0 && c.name == std::string("resize")) continue;
    std::vector<double> ours, theirs;
    c.ours();  // from here on the files are in the page cache
    for (int t = 0; t < options.turns; ++t) {
      for (const bool mine : {t % 2 == 0, t % 2 != 0}) {
        const auto start = BenchClock::now();
        mine ? c.ours() : c.theirs();
        (mine ? ours : theirs).push_back(ms_since(start));
      }
    }
    const double a = launch::median(ours), b = launch::median(theirs),
                 spread = std::max(launch::noise(ours), launch::noise(theirs));
    const double images_per_s = 1e3 * static_cast<double>(rig.images()) / a;
    rows.push_back({c.name, fmt::format("{:.0f}", a), fmt::format("{:.0f}", images_per_s),
                    fmt::format("{:.0f}", rig.bytes / 1e3 / a), c.peer, fmt::format("{:.0f}", b),
                    fmt::format("{:.2f}", b / a), fmt::format("{:.2f}", spread)});
    json result = {{"name", std::string("import ") + c.name},
                   {"ours_ms", a},
                   {"peer", c.peer},
                   {"peer_ms", b},
                   {"ratio", b / a},
                   {"noise", spread}};
    result["params"] = {{"files", rig.images()}, {"threads", options.threads}, {"bytes", rig.bytes}};
    result["ours_samples_ms"] = ours;
    result["peer_samples_ms"] = theirs;
    results.push_back(result);
  }
  fmt::print("{}", launch::format_table(rows));
  const std::map<std::string, double> stages =
      options.resize_shorter == 0 ? std::map<std::string, double>() : stage_seconds(rig);
  double total = 0;
  for (const auto& [stage, seconds] : stages) total += seconds;
  if (!stages.empty()) fmt::print("a CPU-second of an import to {} pixels:", options.resize_shorter);
  for (const auto& [stage, seconds] : stages) fmt::print(" {} {:.3f}", stage, seconds / total);
  if (!stages.empty()) fmt::print("\n");
  if (!options.json.empty())
    io::write_file_atomically(options.json, json{{"results", results}, {"stages", stages}}.dump(2) + "\n");
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::bench
