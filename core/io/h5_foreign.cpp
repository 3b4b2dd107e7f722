#include "core/io/h5_foreign.h"

#include <algorithm>
#include <cstring>

#include "core/io/file_handle.h"
#include "core/io/h5_internal.h"
#include "kernels/base/error.h"

namespace pal::io::h5 {
namespace {

constexpr int64_t kMaxArrayBytes = int64_t{1} << 31;

// Opens a data set that is stored in the file itself and needs no plug-in.
hid_t open_plain(hid_t file, const std::string& path, const std::string& name) {
  PAL_DATA_CHECK(link_exists(file, path, name), path + " has no data set", name,
                 "see `pal help data` for the layouts that are read");
  const hid_t dataset = check(H5Dopen2(file, name.c_str(), H5P_DEFAULT), path + ": " + name + " is not a data set");
  try {
    const Id list(check(H5Dget_create_plist(dataset), path + ": " + name + " has no layout"), H5Pclose);
    const char* todo = "store the data in the file itself";
    PAL_DATA_CHECK(H5Pget_layout(list) != H5D_VIRTUAL, path + ": data set {} is virtual", name, todo);
    PAL_DATA_CHECK(H5Pget_external_count(list) == 0, path + ": data set {} is stored in another file", name, todo);
    for (int k = 0; k < H5Pget_nfilters(list); ++k) {
      unsigned flags = 0, config = 0;
      size_t values = 0;
      const H5Z_filter_t filter =
          H5Pget_filter2(list, static_cast<unsigned>(k), &flags, &values, nullptr, 0, nullptr, &config);
      PAL_DATA_CHECK(filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_FLETCHER32,
                     path + ": " + name + " has the unknown filter {}", filter,
                     "store it with gzip or without a filter");
    }
  } catch (...) {
    H5Dclose(dataset);
    throw;
  }
  return dataset;
}

constexpr uint64_t kReference = 16;  // bytes of an element of variable length: length, address of its heap, index in it

template <class T>
T value_at(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

void check_place(bool holds, const std::string& what, const char* where) {
  PAL_DATA_CHECK(holds, what + ": its place in the file is damaged", where, "copy the file again from its source");
}

// Where the reference to element `row` of a list lies in the file.
uint64_t reference_offset(hid_t dataset, int64_t row, const std::string& what) {
  const Id list(check(H5Dget_create_plist(dataset), what), H5Pclose);
  const auto element = static_cast<hsize_t>(row);
  const bool chunked = H5Pget_layout(list) == H5D_CHUNKED;
  PAL_DATA_CHECK(H5Pget_nfilters(list) == 0 && (chunked || H5Pget_layout(list) == H5D_CONTIGUOUS),
                 what + ": the list is", chunked ? "compressed" : "compact", "store the list without a filter");
  if (!chunked) {
    const haddr_t begin = H5Dget_offset(dataset);
    check_place(begin != HADDR_UNDEF, what, "list");
    return begin + kReference * element;
  }
  hsize_t length = 0, size = 0;
  check(H5Pget_chunk(list, 1, &length), what);
  check_place(length > 0, what, "chunk");
  const hsize_t first = element / length * length;
  unsigned mask = 0;
  haddr_t begin = HADDR_UNDEF;
  check(H5Dget_chunk_info_by_coord(dataset, &first, &mask, &begin, &size), what);
  check_place(begin != HADDR_UNDEF && size >= kReference * (element - first + 1), what, "chunk");
  return begin + kReference * (element - first);
}

// The bytes that a reference points at: an object of a global heap. HDF5 itself reads beyond the end of a damaged heap,
// or does not come to its end.
// Reference: HDF5 File Format Specification 2.0, section III.E.
void read_heap_object(hid_t id, const FileHandle& file, uint64_t offset, std::vector<uint8_t>& bytes,
                      const std::string& what) {
  const Id list(check(H5Fget_create_plist(id), what), H5Pclose);
  size_t address_bytes = 0, length_bytes = 0;
  hsize_t base = 0;
  check(H5Pget_sizes(list, &address_bytes, &length_bytes), what);
  check(H5Pget_userblock(list, &base), what);
  PAL_DATA_CHECK(address_bytes == 8 && length_bytes == 8 && base == 0,
                 what + ": the file has a user block or addresses of", address_bytes,
                 "write it with 8 bytes and without a user block");
  uint8_t head[kReference];
  check_place(file.read_at(offset, head, kReference), what, "reference");
  const auto length = value_at<uint32_t>(head);
  const auto heap = value_at<uint64_t>(head + 4);
  const auto index = value_at<uint32_t>(head + 12);
  bytes.clear();
  if (length == 0) return;
  const uint64_t end = file.size();
  check_place(heap < end && file.read_at(heap, head, kReference) && std::memcmp(head, "GCOL", 4) == 0 &&
                  value_at<uint64_t>(head + 8) <= end - heap,
              what, "heap");
  const uint64_t heap_end = heap + value_at<uint64_t>(head + 8);
  for (uint64_t at = heap + kReference; at + kReference <= heap_end;) {
    check_place(file.read_at(at, head, kReference), what, "heap");
    const uint64_t room = heap_end - at - kReference, size = value_at<uint64_t>(head + 8);
    const auto number = value_at<uint16_t>(head);
    check_place(number != 0 && size <= room, what, "heap");  // 0: the free space at the end
    if (number == index) {
      check_place(length <= size, what, "heap");
      bytes.resize(length);
      return check_place(file.read_at(at + kReference, bytes.data(), length), what, "heap");
    }
    at += kReference + (size + 7) / 8 * 8;
  }
  check_place(false, what, "heap");
}

}  // namespace

ForeignFile::ForeignFile(const std::string& path) : path_(path) {
  const Quiet quiet(path_);
  FileHandle::open_for_reading(path);
  const Id access(access_list(), H5Pclose);
  id_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (id_ < 0)
    throw Error(Exit::data,
                path + " is not a complete HDF5 file: " + library_words() + "; copy it again from its source");
}

ForeignFile::~ForeignFile() {
  const Quiet quiet(path_);
  if (id_ >= 0) H5Fclose(id_);
}

bool ForeignFile::has(const std::string& name) const {
  const Quiet quiet(path_);
  return link_exists(id_, path_, name);
}

std::vector<ForeignFile::Member> ForeignFile::members(const std::string& group) const {
  const Quiet quiet(path_);
  const Id id(check(H5Gopen2(id_, group.c_str(), H5P_DEFAULT), path_ + ": " + group + " is not a group"), H5Gclose);
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->push_back(name);
    return 0;
  };
  check(H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, nullptr, take, &names), path_ + ": " + group + " cannot be listed");
  std::vector<Member> found;
  for (const std::string& name : names) {
    const std::string full = group == "/" ? name : group + "/" + name;
    link_exists(id_, path_, full);  // refuses links to other files
    H5O_info_t info{};
    check(H5Oget_info_by_name2(id_, full.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT),
          path_ + ": " + full + " cannot be read");
    if (info.type == H5O_TYPE_GROUP) found.push_back({name, Member::group});
    if (info.type == H5O_TYPE_DATASET) found.push_back({name, Member::data_set});
  }
  std::sort(found.begin(), found.end(), [](const Member& a, const Member& b) { return a.name < b.name; });
  return found;
}

std::vector<int64_t> ForeignFile::shape(const std::string& name) const {
  const Quiet quiet(path_);
  const Id dataset(open_plain(id_, path_, name), H5Dclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  const int axes = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(axes, 0)));
  if (axes > 0) H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  return {dims.begin(), dims.end()};
}

bool ForeignFile::written(const std::string& name) const {
  const Quiet quiet(path_);
  const std::string what = path_ + ": " + name + " cannot be read";
  const Id dataset(open_plain(id_, path_, name), H5Dclose);
  const Id list(check(H5Dget_create_plist(dataset), what), H5Pclose);
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  const auto count = static_cast<uint64_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space), 0));
  if (count == 0) return true;
  if (H5Pget_layout(list) == H5D_CHUNKED) {  // HDF5's own status compares bytes, and is wrong where they are compressed
    const std::vector<int64_t> sides = shape(name);
    std::vector<hsize_t> chunk(sides.size());
    check(H5Pget_chunk(list, static_cast<int>(chunk.size()), chunk.data()), what);
    hsize_t chunks = 1, there = 0;
    for (size_t k = 0; k < chunk.size(); ++k) {
      if (chunk[k] == 0) return false;
      const hsize_t along = (static_cast<hsize_t>(sides[k]) + chunk[k] - 1) / chunk[k];
      if (__builtin_mul_overflow(chunks, along, &chunks)) return false;
    }
    check(H5Dget_num_chunks(dataset, space, &there), what);
    if (there != chunks) return false;
  } else {
    H5D_space_status_t status = H5D_SPACE_STATUS_NOT_ALLOCATED;
    check(H5Dget_space_status(dataset, &status), what);
    if (status != H5D_SPACE_STATUS_ALLOCATED) return false;
  }
  // Also bounds what a reader allocates: by the size of the file, not by the shape in its header.
  constexpr uint64_t kMostCompressed = 1032;  // of deflate
  const uint64_t stored = H5Dget_storage_size(dataset), item = H5Tget_size(type);
  return stored <= FileHandle::open_for_reading(path_).size() && item > 0 && count <= kMostCompressed * stored / item;
}

std::vector<int64_t> ForeignFile::integers(const std::string& name) const {
  const Quiet quiet(path_);
  const Id dataset(open_plain(id_, path_, name), H5Dclose);
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  PAL_DATA_CHECK(H5Tget_class(type) == H5T_INTEGER && count >= 0 && count <= kMaxArrayBytes / 8,
                 path_ + ": data set {} has the wrong type", name, "it must be a list of integers");
  std::vector<int64_t> values(static_cast<size_t>(count));
  check(H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
        path_ + ": " + name + " cannot be read");
  return values;
}

void ForeignFile::read_floats(const std::string& name, std::span<float> values) const {
  const Quiet quiet(path_);
  const Id dataset(open_plain(id_, path_, name), H5Dclose);
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  PAL_DATA_CHECK(
      H5Tget_class(type) == H5T_FLOAT && H5Sget_simple_extent_npoints(space) == static_cast<hssize_t>(values.size()),
      path_ + ": data set {} has the wrong type or size", name, "it must be an array of floats");
  check(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
        path_ + ": " + name + " cannot be read");
}

void ForeignFile::read_bytes(const std::string& name, int64_t row, std::vector<uint8_t>& bytes) const {
  const Quiet quiet(path_);
  const Id dataset(open_plain(id_, path_, name), H5Dclose);
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  const bool list = H5Sget_simple_extent_ndims(space) == 1 && row < H5Sget_simple_extent_npoints(space);
  bool of_bytes = false;
  if (H5Tget_class(type) == H5T_VLEN) {
    const Id item(H5Tget_super(type), H5Tclose);
    of_bytes = H5Tget_class(item) == H5T_INTEGER && H5Tget_size(item) == 1;
  }
  PAL_DATA_CHECK(list && of_bytes, path_ + ": data set {} has the wrong type", name,
                 "it must be a list of byte arrays of any length");
  const std::string what = path_ + ": " + name + "[" + std::to_string(row) + "] cannot be read";
  read_heap_object(id_, FileHandle::open_for_reading(path_), reference_offset(dataset, row, what), bytes, what);
}

void ForeignFile::read_bytes(const std::string& name, std::vector<uint8_t>& bytes) const {
  const Quiet quiet(path_);
  const Id dataset(open_plain(id_, path_, name), H5Dclose);
  const Id type(H5Dget_type(dataset), H5Tclose);
  const Id space(H5Dget_space(dataset), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  const bool is_bytes = (H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_OPAQUE) && count >= 0;
  const int64_t item = static_cast<int64_t>(H5Tget_size(type));
  PAL_DATA_CHECK(is_bytes && (item == 1 || H5Tget_class(type) == H5T_OPAQUE),
                 path_ + ": data set {} has the wrong type", name, "it must be bytes");
  PAL_DATA_CHECK(count <= kMaxArrayBytes / item, path_ + ": data set {} is too large for an image", name,
                 "leave it out");
  bytes.resize(static_cast<size_t>(count * item));
  check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), path_ + ": " + name + " cannot be read");
}

}  // namespace pal::io::h5
