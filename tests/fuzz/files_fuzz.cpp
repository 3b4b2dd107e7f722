// files_fuzz: bytes as a file of each format that the program reads: the reader returns, or refuses with an Error.
//
// The name of the program chooses the format: config_fuzz is a link to it. With PAL_FUZZ_ACCEPT set, a refused input
// fails. This proves that the good seeds reach the code behind the first check.
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/source.h"
#include "core/data/feature_set.h"
#include "core/data/image/png.h"
#include "core/data/import/import_internal.h"
#include "core/graph/graph_files.h"
#include "core/io/csv.h"
#include "core/io/file_handle.h"
#include "core/io/files.h"
#include "core/io/safetensors.h"
#include "core/label/users.h"
#include "core/oracle/ledger/answers_io.h"
#include "core/record/checkpoint.h"
#include "kernels/base/error.h"

namespace {

using pal::oracle::AnswerFormat;

void read_answers(const std::string& path, AnswerFormat format) {
  const pal::oracle::ReadEntries read = pal::oracle::import_answers(path, format, "x");
  if (read.bad_lines.size() != read.reasons.size() || read.entries.size() != read.lines.size()) __builtin_trap();
  if (!read.reasons.empty()) throw pal::Error(pal::Exit::data, read.reasons[0]);
}

void read_graph(const std::string& path, int64_t samples) {
  pal::graph::PairsFile file = pal::graph::read_pairs(path, samples);
  pal::graph::WeightedEdges(file.samples, std::move(file.pairs), path);
}

using OpenImages = std::unique_ptr<pal::data::ImageSource> (*)(const pal::data::ImportOptions&);

template <OpenImages open>
void read_images(const std::string& path) {
  pal::data::ImportOptions options;
  options.source = path;
  const auto source = open(options);
  std::vector<uint8_t> bytes;
  for (size_t k = 0; k < source->images.size(); ++k) source->read(static_cast<int64_t>(k), bytes);
}

// A changed header has a wrong checksum: correct it, so that the code behind the check is reached, too.
void correct_tar(std::vector<uint8_t>& bytes) {
  for (size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    uint8_t* const block = bytes.data() + at;
    if (std::memcmp(block + 257, "ustar", 5) != 0) continue;
    std::memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t k = 0; k < 512; ++k) sum += block[k];
    std::snprintf(reinterpret_cast<char*>(block + 148), 8, "%06o", sum);
  }
}

void read_png(const std::string& path) {
  const std::string bytes = pal::io::read_whole_file(path);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  std::vector<uint8_t> pixels;
  const pal::data::PngHeader header = pal::data::decode_png(data, bytes.size(), pixels, {1 << 18, 20});
  if (pixels.size() != static_cast<size_t>(header.width) * header.height * header.channels) __builtin_trap();
}

// The same for the checksums of a PNG file's chunks.
void correct_png(std::vector<uint8_t>& bytes) {
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const uint8_t* const chunk = bytes.data() + at;
    const size_t length = size_t{chunk[0]} << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
    if (length > bytes.size() - at - 12) return;
    const auto crc = static_cast<uint32_t>(crc32(0, chunk + 4, static_cast<uInt>(length + 4)));
    for (size_t k = 0; k < 4; ++k) bytes[at + 8 + length + k] = static_cast<uint8_t>(crc >> (24 - 8 * k));
    at += 12 + length;
  }
}

struct Format {
  const char* name;
  const char* ending;
  std::function<void(const std::string& path)> read;
  pal::Exit refused = pal::Exit::data;
  std::function<void(std::vector<uint8_t>&)> correct = {};
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"config", ".yaml", [](const auto& path) { pal::config::read_settings(path, pal::config::Expand::everything); },
       pal::Exit::usage},
      {"csv", ".csv", [](const auto& path) { pal::io::read_manifest(path); }},
      {"pairs", ".csv", [](const auto& path) { read_graph(path, 1000); }},
      {"pairs_h5", ".h5", [](const auto& path) { read_graph(path, pal::graph::kAsInFile); }},
      {"lines", ".jsonl", [](const auto& path) { read_answers(path, AnswerFormat::jsonl); }},
      {"answers_csv", ".csv", [](const auto& path) { read_answers(path, AnswerFormat::csv); }},
      {"label_studio", ".json", [](const auto& path) { read_answers(path, AnswerFormat::label_studio); }},
      {"users", ".txt", [](const auto& path) { pal::label::read_users(path); }, pal::Exit::usage},
      {"npy", ".npy", [](const auto& path) { pal::data::read_features(path); }},
      {"features", ".h5", [](const auto& path) { pal::data::read_features(path); }},
      {"safetensors", ".safetensors", [](const auto& path) { pal::io::read_safetensors(path); }},
      {"state", ".json",
       [](const auto& path) { pal::record::parse_state(pal::io::read_whole_file(path), "state.json"); }},
      {"tar", ".tar", read_images<pal::data::webdataset_source>, pal::Exit::data, correct_tar},
      {"images_h5", ".h5", read_images<pal::data::h5_source>},
      {"png", ".png", read_png, pal::Exit::data, correct_png},
  };
  return all;
}

const Format* format = nullptr;
std::string path;  // HDF5 opens files by name, so an anonymous memory file does not work

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
  const std::string program = std::filesystem::path((*arguments)[0]).filename();
  for (const Format& f : formats()) {
    if (program == std::string(f.name) + "_fuzz") format = &f;
  }
  if (format == nullptr) {
    for (const Format& f : formats()) std::printf("%s\n", f.name);
    std::exit(0);
  }
  path = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm/pal-fuzz-" : "./pal-fuzz-") + std::to_string(::getpid()) +
         format->ending;
  std::atexit([] { ::unlink(path.c_str()); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  if (format->correct) format->correct(bytes);
  pal::io::FileHandle::create(path, "the input").write_at(0, bytes.data(), bytes.size());
  try {
    format->read(path);
  } catch (const pal::Error& error) {
    if (error.code() != format->refused) throw;
    if (std::getenv("PAL_FUZZ_ACCEPT") != nullptr) throw;
  }
  return 0;
}
