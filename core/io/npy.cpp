#include "core/io/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::io {
namespace {

constexpr uint32_t kMaxHeader = 1 << 16;  // NumPy writes about a hundred bytes for plain numbers

// What follows 'key': in the header, without blanks before it; nothing when the key is missing.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const auto skip_blanks = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(" \t\n\r"), text.size()));
  };
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = skip_blanks(header.substr(at + key.size()));
  if (!rest.starts_with(':')) return std::nullopt;
  return skip_blanks(rest.substr(1));
}

// The text from `open` at the front of the value up to `close`.
std::optional<std::string_view> between(std::optional<std::string_view> value, char open, char close) {
  if (!value || !value->starts_with(open)) return std::nullopt;
  const size_t end = value->find(close, 1);
  if (end == std::string_view::npos) return std::nullopt;
  return value->substr(1, end - 1);
}

// "3, 4" or "3,"; nothing when anything else is in it.
std::optional<std::vector<int64_t>> sides_of(std::string_view text) {
  std::vector<int64_t> sides;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t side = 0;
    const auto [next, error] = std::from_chars(at, end, side);
    if (error != std::errc() || side < 0) return std::nullopt;
    sides.push_back(side);
    at = next;
  }
  return sides;
}

}  // namespace

Npy read_npy(const std::string& path) {
  Npy file;
  file.bytes = read_whole_file(path);
  const std::string& b = file.bytes;
  PAL_DATA_CHECK(b.size() >= 12 && b.compare(0, 6, "\x93NUMPY") == 0, "this is not a NumPy file", path,
                 "write it with numpy.save");
  const bool first = b[6] == 1;  // version 1 has a length of 2 bytes, later ones of 4
  uint32_t length = 0;
  std::memcpy(&length, b.data() + 8, first ? 2 : 4);
  PAL_DATA_CHECK(length <= kMaxHeader, "the NumPy file " + path + " has a header of {} bytes", length,
                 "save an array of numbers");
  file.begin = (first ? 10 : 12) + size_t{length};
  PAL_DATA_CHECK(file.begin <= b.size(), "the NumPy file is cut off", path, "write it again");
  const std::string_view header(b.data() + (first ? 10 : 12), length);
  const auto type = between(value_of(header, "'descr'"), '\'', '\''),
             shape = between(value_of(header, "'shape'"), '(', ')');
  PAL_DATA_CHECK(!type || type->find('O') == std::string_view::npos,
                 "the NumPy file holds Python objects (dtype object)", path,
                 "save an array of numbers, for instance numpy.stack(rows).astype('float32')");
  PAL_DATA_CHECK(type && type->size() == 3 && (*type)[2] >= '1' && (*type)[2] <= '8',
                 "the NumPy file does not hold plain numbers", path, "save an array of numbers");
  file.type = *type;
  const auto order = value_of(header, "'fortran_order'");
  PAL_DATA_CHECK(order && order->starts_with("False"), "the NumPy file is in Fortran order", path,
                 "save numpy.ascontiguousarray(x)");
  const auto sides = shape ? sides_of(*shape) : std::nullopt;
  PAL_DATA_CHECK(sides, "the NumPy file has no shape", path, "save an array of numbers");
  file.shape = *sides;
  int64_t values = 1, bytes = 0;
  bool counted = true;
  for (const int64_t side : file.shape) counted = counted && !__builtin_mul_overflow(values, side, &values);
  counted = counted && !__builtin_mul_overflow(values, int64_t{file.type[2] - '0'}, &bytes);
  PAL_DATA_CHECK(counted && bytes == static_cast<int64_t>(b.size() - file.begin),
                 "the size of the NumPy file does not match its shape", path, "write it again; it may be cut off");
  return file;
}

}  // namespace pal::io
