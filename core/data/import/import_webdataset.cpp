// import_webdataset: tar files of samples; the files of a sample share a key: key.jpg and key.cls.
//
// The tar files are walked header by header, without reading the images; those are read in place later.
// Reference: POSIX.1-2017, pax interchange format (ustar, extended headers), and GNU's long names.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/data/dataset.h"
#include "core/data/import/image_converter.h"
#include "core/data/import/import_internal.h"
#include "core/data/shard_format.h"
#include "core/io/file_handle.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kBlock = 512;
constexpr const char* kTarAgain = "copy or make it again";

struct TarMember {
  std::string name;
  uint64_t offset = 0, bytes = 0;
};

class TarWalk {
 public:
  explicit TarWalk(const std::string& path) : file_(io::FileHandle::open_for_reading(path)), end_(file_.size()) {}

  // The next regular file; false at the end.
  bool next(TarMember& member) {
    std::string long_name;
    for (;;) {
      if (end_ - at_ < kBlock) {
        PAL_DATA_CHECK(at_ == end_ && at_ > 0, path() + " is cut off at byte {}", end_, kTarAgain);
        return false;  // some writers omit the empty blocks at the end
      }
      char block[kBlock];
      read(at_, block, kBlock);
      if (std::all_of(block, block + kBlock, [](char c) { return c == '\0'; })) return false;
      check_block(block);
      const uint64_t bytes = number(block + 124, 12), content = at_ + kBlock;
      const uint64_t room = (end_ - content) / kBlock * kBlock;  // a whole number of blocks, padding included
      PAL_DATA_CHECK(bytes <= room, path() + " is cut off within", name_of(block), kTarAgain);
      at_ = content + (bytes + kBlock - 1) / kBlock * kBlock;
      const char type = block[156];
      if (type == 'L' || type == 'x') {
        PAL_DATA_CHECK(bytes <= 1 << 16, path() + " has a file name of {} bytes", bytes, kTarAgain);
        std::string text(bytes, '\0');
        read(content, text.data(), bytes);
        const std::string found = type == 'L' ? std::string(text.c_str()) : pax_path(text);
        if (!found.empty()) long_name = found;
      } else if (type == '0' || type == '\0') {
        member = {long_name.empty() ? name_of(block) : long_name, content, bytes};
        return true;
      } else {
        long_name.clear();
      }
    }
  }

  const std::string& path() const { return file_.path(); }
  void read(uint64_t offset, char* data, size_t bytes) const {
    PAL_DATA_CHECK(file_.read_at(offset, data, bytes), path() + " is cut off at byte {}", end_, kTarAgain);
  }

 private:
  void check_block(const char* block) const {
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
    PAL_DATA_CHECK(sum == number(block + 148, 8), path() + " is not a tar file, or is damaged at byte {}", at_,
                   "decompress it to .tar first if it is compressed");
  }

  uint64_t number(const char* field, size_t bytes) const {
    uint64_t value = 0;
    if (static_cast<unsigned char>(field[0]) == 0x80) {  // GNU: base 256
      for (size_t i = bytes - 8; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(field[i]);
      return value;
    }
    for (size_t i = 0; i < bytes; ++i) {
      if (field[i] >= '0' && field[i] <= '7')
        value = value * 8 + static_cast<uint64_t>(field[i] - '0');
      else if (field[i] != ' ' && field[i] != '\0')
        return ~uint64_t{0};
    }
    return value;
  }

  static std::string name_of(const char* block) {
    const auto text = [&](size_t at, size_t most) { return std::string(block + at, strnlen(block + at, most)); };
    const std::string prefix = std::memcmp(block + 257, "ustar\0", 6) == 0 ? text(345, 155) : "";
    return prefix.empty() ? text(0, 100) : prefix + "/" + text(0, 100);
  }

  // Records "LENGTH key=value\n".
  static std::string pax_path(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const size_t space = text.find(' ', at);
      if (space == std::string::npos || space - at > 9) break;
      const size_t length = std::strtoul(text.c_str() + at, nullptr, 10);
      if (length < space - at + 2 || length > text.size() - at) break;
      const std::string record = text.substr(space + 1, at + length - space - 2);
      if (record.rfind("path=", 0) == 0) return record.substr(5);
      at += length;
    }
    return "";
  }

  io::FileHandle file_;
  uint64_t end_, at_ = 0;
};

class TarSource final : public ImageSource {
 public:
  void read(int64_t image, std::vector<uint8_t>& file) const override {
    const Place& place = places_[static_cast<size_t>(image)];
    const uint64_t bytes = images[static_cast<size_t>(image)].bytes;
    PAL_DATA_CHECK(bytes <= shard_format::kMaxImageBytes, "file of more than 2 GB", bytes, "leave it out");
    file.resize(bytes);
    const io::FileHandle& tar = tars_[place.tar];
    PAL_DATA_CHECK(tar.read_at(place.offset, file.data(), file.size()), "its tar file became shorter", tar.path(),
                   "import again");
  }

  void add_tar(const std::string& path) {
    struct stat status {};
    tars_.push_back(io::FileHandle::open_for_reading(path));
    if (::stat(path.c_str(), &status) == 0) changed_ = status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    TarWalk walk(path);
    key_.clear();
    for (TarMember member; walk.next(member);) add(walk, member);
    end_sample();
  }

  void finish() {
    end_sample();
    const LabelNames names(texts_);
    classes = names.classes();
    for (size_t i = 0; i < images.size(); ++i) images[i].label = names.label(texts_[i]);
    splits = {{"", 0, static_cast<int64_t>(images.size())}};
  }

 private:
  struct Place {
    size_t tar = 0;
    uint64_t offset = 0;
  };

  void add(const TarWalk& walk, const TarMember& member) {
    const size_t slash = member.name.rfind('/');
    const size_t base = slash == std::string::npos ? 0 : slash + 1, dot = member.name.find('.', base);
    if (dot == std::string::npos || dot == base) {
      ++ignored[dot == base ? "hidden files" : "files without ending"];
      return;
    }
    const std::string key = member.name.substr(0, dot), ending = member.name.substr(dot + 1);
    if (key != key_) {
      end_sample();
      key_ = key;
    }
    if (ending == "cls") {
      std::string text(std::min<uint64_t>(member.bytes, 200), '\0');
      walk.read(member.offset, text.data(), text.size());
      text.erase(text.find_last_not_of(" \r\n\t") + 1);
      label_ = text;
    } else if (has_image_name(member.name) && image_.name.empty()) {
      image_ = member;
    } else {
      ++ignored["*." + ending.substr(ending.rfind('.') + 1)];
    }
  }

  void end_sample() {
    if (!image_.name.empty()) {
      images.push_back({image_.name, -1, image_.bytes, changed_});
      places_.push_back({tars_.size() - 1, image_.offset});
      texts_.push_back(label_);
    }
    image_ = {};
    label_.clear();
  }

  std::vector<io::FileHandle> tars_;
  std::vector<Place> places_;
  std::vector<std::string> texts_;  // labels as they are written
  std::string key_, label_;         // of the current sample
  TarMember image_;
  int64_t changed_ = 0;
};

}  // namespace

std::unique_ptr<ImageSource> webdataset_source(const ImportOptions& options) {
  std::vector<std::string> tars;
  if (fs::is_directory(options.source)) {
    for (const auto& entry : fs::directory_iterator(options.source)) {
      if (entry.path().extension() == ".tar") tars.push_back(entry.path().string());
    }
    std::sort(tars.begin(), tars.end());
  } else if (fs::is_regular_file(options.source)) {
    tars = {options.source};
  } else {
    tars = expand_glob(options.source);
  }
  PAL_DATA_CHECK(!tars.empty(), "there are no tar files here", options.source,
                 "give a .tar file, a folder of them, or a glob in quotes");
  auto source = std::make_unique<TarSource>();
  for (const std::string& tar : tars) source->add_tar(tar);
  source->finish();
  apply_labels(*source, options);
  return source;
}

ImportReport import_webdataset(const ImportOptions& options) {
  return import_images(webdataset_source(options), options);
}

}  // namespace pal::data
