#include "tests/simgpu/runtime/fatbin.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/simgpu/fault.h"

namespace simgpu {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1, kDataMagic = 0xba55ed50;
constexpr uint16_t kPtx = 1;
constexpr uint64_t kCompressed = 0xb000;  // any of the known ways: LZ4, zstd

struct Wrapper {
  uint32_t magic, version;
  const char* data;
  const void* file;
};

struct Header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of the entries behind it
};

struct Entry {
  uint16_t kind, unknown;
  uint32_t header_bytes;
  uint64_t bytes;
  char unused[12];
  uint32_t target;
  char name[8];
  uint64_t flags;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 48);

// Entries need not lie at aligned addresses.
template <class T>
T read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

[[noreturn]] void refuse(const std::string& why) { throw Fault(FaultKind::bad_ptx, why); }

}  // namespace

std::vector<PtxImage> ptx_images(const void* wrapper) {
  const auto outer = read<Wrapper>(static_cast<const char*>(wrapper));
  if (outer.magic != kWrapperMagic)
    refuse("what the program registers is no fat binary: its magic number is " + std::to_string(outer.magic));
  const auto header = read<Header>(outer.data);
  if (header.magic != kDataMagic) refuse("the data of the fat binary begins with " + std::to_string(header.magic));

  std::vector<PtxImage> images;
  bool compressed = false;
  const char* at = outer.data + header.header_bytes;
  for (const char* end = at + header.bytes; at < end;) {
    const auto entry = read<Entry>(at);
    if (entry.header_bytes < sizeof(Entry) || entry.bytes > static_cast<uint64_t>(end - at))
      refuse("the fat binary is cut off");
    if (entry.kind == kPtx && (entry.flags & kCompressed)) {
      compressed = true;
    } else if (entry.kind == kPtx) {
      std::string_view text(at + entry.header_bytes, entry.bytes);
      text = text.substr(0, text.find('\0'));  // padded with zeros
      images.push_back({text, static_cast<int>(entry.target)});
    }
    at += entry.header_bytes + entry.bytes;
  }
  if (images.empty() && compressed) refuse("the PTX in this program is compressed: compile with --no-compress");
  if (images.empty())
    refuse("there is no PTX in this program: compile for a virtual target, -gencode arch=compute_75,code=compute_75");
  return images;
}

const PtxImage& newest(const std::vector<PtxImage>& images) {
  return *std::max_element(images.begin(), images.end(),
                           [](const PtxImage& a, const PtxImage& b) { return a.target < b.target; });
}

}  // namespace simgpu
