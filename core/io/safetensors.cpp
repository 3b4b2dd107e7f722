#include "core/io/safetensors.h"

#include <ATen/ops/empty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/io/json.h"
#include "core/io/regular_file.h"
#include "core/io/safetensors_bytes.h"
#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"

namespace pal::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint64_t kMaxHeader = 100'000'000;  // as the reference implementation

struct Dtype {
  const char* name;
  at::ScalarType type;
};
constexpr Dtype kDtypes[] = {{"F64", at::kDouble}, {"I64", at::kLong},      {"F32", at::kFloat}, {"I32", at::kInt},
                             {"F16", at::kHalf},   {"BF16", at::kBFloat16}, {"U8", at::kByte}};

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(Exit::data, "bad safetensors file " + path + ": " + reason + "; write it again or use another");
}

// Closes on leaving.
struct Descriptor {
  int file;
  ~Descriptor() { close(file); }
};

void read_at(const std::string& path, int file, void* into, uint64_t bytes, uint64_t offset) {
  char* to = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = pread(file, to, std::min<uint64_t>(bytes, uint64_t{1} << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path, std::strerror(errno));
    if (got == 0) refuse(path, "it is cut off");
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

// Like json::parse, but a repeated key is an error.
nlohmann::json parse_header(const std::string& path, const std::string& text) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kJsonDepth) refuse(path, "its header is nested deeper than " + std::to_string(kJsonDepth));
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(value.get<std::string>()).second)
      refuse(path, "the name '" + value.get<std::string>() + "' comes twice in its header");
    return true;
  };
  try {
    if (text.empty() || text[0] != '{') refuse(path, "its header is not a JSON object");
    return nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::exception& e) {
    refuse(path, std::string("its header is not JSON (") + e.what() + ")");
  }
}

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

Entry parse_entry(const std::string& path, const std::string& name, const nlohmann::json& value) {
  const auto bad = [&](const std::string& reason) { refuse(path, "tensor '" + name + "' " + reason); };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets"))
    bad("does not have exactly dtype, shape and data_offsets");
  const auto &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  Entry entry{name, at::kFloat, {}, 0, 0};
  const auto* found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return dtype == d.name; });
  if (found == std::end(kDtypes))
    bad("has the unknown type " + (dtype.is_string() ? dtype.get<std::string>().substr(0, 40) : "of no name"));
  entry.type = found->type;
  uint64_t bytes = c10::elementSize(entry.type), strides = bytes;  // strides: as if no side were 0
  if (!shape.is_array()) bad("has a shape that is not a list");
  for (const auto& side : shape) {
    if (!side.is_number_unsigned() || side.get<uint64_t>() > INT64_MAX) bad("has a side that is not a count");
    const auto n = side.get<uint64_t>();
    if (__builtin_mul_overflow(strides, std::max<uint64_t>(n, 1), &strides) || strides > INT64_MAX)
      bad("has more elements than can be counted");
    bytes *= n;
    entry.shape.push_back(side.get<int64_t>());
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    bad("has data_offsets that are not two counts");
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) bad("has data_offsets that do not fit its shape");
  return entry;
}

}  // namespace

std::string write_safetensors(const std::string& path, const ops::NamedTensors& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<TensorBytes> plain;
  for (const auto& named : tensors) {
    const at::Tensor& t = named.second;
    const auto* dtype =
        std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return t.scalar_type() == d.type; });
    PAL_ASSERT(dtype != std::end(kDtypes), "tensors of this type are not written");
    plain.push_back({named.first, dtype->name, static_cast<uint64_t>(t.element_size()), t.sizes().vec(), t.nbytes()});
  }
  at::Tensor dense;
  const auto source = [&](size_t k) {
    dense = tensors[k].second.detach().cpu().contiguous();
    return dense.const_data_ptr();
  };
  return write_safetensors_bytes(path, plain, source, metadata);
}

SafetensorsFile read_safetensors(const std::string& path) {
  const Descriptor descriptor{open_regular_file(path)};
  struct stat info {};
  PAL_DATA_CHECK(fstat(descriptor.file, &info) == 0, "cannot read " + path, std::strerror(errno), "check the disk");
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t length = 0;
  if (size < sizeof(length)) refuse(path, "it has only " + std::to_string(size) + " bytes");
  read_at(path, descriptor.file, &length, sizeof(length), 0);
  if (length > kMaxHeader) refuse(path, "its header has " + std::to_string(length) + " bytes, more than 100 MB");
  if (length > size - sizeof(length))
    refuse(path, "its header has " + std::to_string(length) + " bytes, more than the file");
  std::string text(length, '\0');
  read_at(path, descriptor.file, text.data(), length, sizeof(length));

  SafetensorsFile result;
  std::vector<Entry> entries;
  const nlohmann::json header = parse_header(path, text);
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(parse_entry(path, name, value));
      continue;
    }
    if (!value.is_object()) refuse(path, "__metadata__ is not an object");
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) refuse(path, "__metadata__ holds something other than text under '" + key + "'");
      result.metadata[key] = word;
    }
  }
  // Together they are the data, without overlap and without holes.
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  const uint64_t start = sizeof(length) + length;
  uint64_t expected = 0;
  for (const Entry& e : entries) {
    if (e.begin != expected)
      refuse(path, "tensor '" + e.name + "' begins at " + std::to_string(e.begin) + " where " +
                       std::to_string(expected) + " was due");
    expected = e.end;
    if (e.end > size - start) refuse(path, "tensor '" + e.name + "' ends beyond the file");
  }
  if (expected != size - start)
    refuse(path, std::to_string(size - start - expected) + " bytes at its end belong to no tensor");
  check_fits_memory(path, static_cast<double>(size - start));
  for (const Entry& e : entries) {
    at::Tensor tensor = at::empty(e.shape, e.type);
    read_at(path, descriptor.file, tensor.data_ptr(), e.end - e.begin, start + e.begin);
    result.tensors[e.name] = tensor;
  }
  return result;
}

}  // namespace pal::io
