// h5_arrays: the bytes of an HDF5 file's arrays, read and written in place.
#include <algorithm>

#include "core/io/h5.h"
#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::io::h5 {

template <class T>
std::vector<T> File::read(const std::string& name) const {
  const Extent e = extent(name, type_of<T>());
  check_fits_memory(handle_.path(), static_cast<double>(e.count) * sizeof(T));
  std::vector<T> values(static_cast<size_t>(e.count));
  PAL_DATA_CHECK(handle_.read_at(e.offset, values.data(), values.size() * sizeof(T)), handle_.path() + " ends within",
                 name, "copy or import it again");
  return values;
}

template <class T>
void File::write(const std::string& name, const std::vector<T>& values) {
  handle_.write_at(end_, values.data(), values.size() * sizeof(T));
  describe(name, type_of<T>(), static_cast<int64_t>(values.size()), sizeof(T));
}

#define PAL_H5_ARRAYS_OF(T)                                             \
  template std::vector<T> File::read<T>(const std::string& name) const; \
  template void File::write<T>(const std::string& name, const std::vector<T>& values);
PAL_H5_ARRAYS_OF(uint8_t)
PAL_H5_ARRAYS_OF(uint32_t)
PAL_H5_ARRAYS_OF(uint64_t)
PAL_H5_ARRAYS_OF(int32_t)
PAL_H5_ARRAYS_OF(int64_t)
PAL_H5_ARRAYS_OF(float)
PAL_H5_ARRAYS_OF(double)
#undef PAL_H5_ARRAYS_OF

std::vector<std::string> File::read_text(const std::string& name) const {
  const Extent e = extent(name, Type::text);
  check_fits_memory(handle_.path(),
                    static_cast<double>(e.count) * (2.0 * static_cast<double>(e.item_bytes) + sizeof(std::string)));
  std::string bytes(static_cast<size_t>(e.count * e.item_bytes), '\0');
  PAL_DATA_CHECK(handle_.read_at(e.offset, bytes.data(), bytes.size()), handle_.path() + " ends within", name,
                 "copy or import it again");
  std::vector<std::string> values(static_cast<size_t>(e.count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = unpack_text(bytes.data() + i * static_cast<size_t>(e.item_bytes), e.item_bytes);
  return values;
}

void File::write_text(const std::string& name, const std::vector<std::string>& values) {
  const PackedText packed = pack_text(values);
  handle_.write_at(end_, packed.bytes.data(), packed.bytes.size());
  describe(name, Type::text, static_cast<int64_t>(values.size()), packed.width);
}

PackedText pack_text(const std::vector<std::string>& values) {
  PackedText packed;
  for (const std::string& value : values) packed.width = std::max(packed.width, static_cast<int64_t>(value.size()));
  const auto width = static_cast<size_t>(packed.width);
  packed.bytes.assign(values.size() * width, '\0');
  for (size_t i = 0; i < values.size(); ++i) values[i].copy(packed.bytes.data() + i * width, width);
  return packed;
}

std::string unpack_text(const char* item, int64_t width) {
  return std::string(item, std::find(item, item + width, '\0'));
}

}  // namespace pal::io::h5
