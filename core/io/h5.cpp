#include "core/io/h5.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/io/h5_internal.h"
#include "kernels/base/error.h"

namespace pal::io::h5 {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays go to the file as they are in memory");

hid_t file_type(Type type) {
  switch (type) {
    case Type::u8:
      return H5T_STD_U8LE;
    case Type::u32:
      return H5T_STD_U32LE;
    case Type::u64:
      return H5T_STD_U64LE;
    case Type::i32:
      return H5T_STD_I32LE;
    case Type::i64:
      return H5T_STD_I64LE;
    case Type::f32:
      return H5T_IEEE_F32LE;
    case Type::f64:
      return H5T_IEEE_F64LE;
    case Type::text:
      return H5T_C_S1;
  }
  return -1;
}

const char* type_name(Type type) {
  constexpr const char* kNames[] = {"uint8", "uint32",  "uint64",  "int32",
                                    "int64", "float32", "float64", "fixed-length text"};
  return kNames[static_cast<int>(type)];
}

hid_t text_type(size_t width) {
  const hid_t id = H5Tcopy(H5T_C_S1);
  H5Tset_size(id, width);
  H5Tset_strpad(id, H5T_STR_NULLPAD);
  H5Tset_cset(id, H5T_CSET_UTF8);
  return id;
}

bool same_type(hid_t stored, Type wanted) {
  if (wanted == Type::text) return H5Tget_class(stored) == H5T_STRING && H5Tis_variable_str(stored) == 0;
  return H5Tequal(stored, file_type(wanted)) > 0;
}

// Makes HDF5 keep the file in memory, as far as it writes it itself (the metadata), and hand it over on closing.
void describe_in_memory(hid_t list, std::string* head) {
  H5Pset_fapl_core(list, kHeadBytes, false);
  H5FD_file_image_callbacks_t calls{};
  calls.image_malloc = [](size_t bytes, H5FD_file_image_op_t, void*) { return std::malloc(bytes); };
  calls.image_memcpy = [](void* to, const void* from, size_t bytes, H5FD_file_image_op_t, void*) {
    return std::memcpy(to, from, bytes);
  };
  calls.image_realloc = [](void* old, size_t bytes, H5FD_file_image_op_t, void* out) -> void* {
    static_cast<std::string*>(out)->resize(bytes);  // remembers the size for image_free
    return std::realloc(old, bytes);
  };
  calls.image_free = [](void* image, H5FD_file_image_op_t, void* out) -> herr_t {
    auto* head = static_cast<std::string*>(out);
    std::memcpy(head->data(), image, head->size());
    std::free(image);
    return 0;
  };
  calls.udata_copy = [](void* out) { return out; };
  calls.udata_free = [](void*) -> herr_t { return 0; };
  calls.udata = head;
  check(H5Pset_file_image_callbacks(list, &calls), "HDF5 does not keep files in memory");
}

int descriptor_copy(hid_t file, const std::string& path) {
  void* handle = nullptr;
  check(H5Fget_vfd_handle(file, H5P_DEFAULT, &handle), path + " has no descriptor");
  const int copy = ::dup(*static_cast<int*>(handle));
  PAL_DATA_CHECK(copy >= 0, path + " cannot be opened", std::strerror(errno),
                 "raise the limit of open files (ulimit -n)");
  return copy;
}

hid_t open_attribute(hid_t file, const std::string& path, const std::string& object, const std::string& name) {
  const bool there =
      link_exists(file, path, object) && H5Aexists_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
  PAL_DATA_CHECK(there, path + " has no attribute", name, "`pal data import` makes files that have it");
  const hid_t id = H5Aopen_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  return check(id, path + ": attribute " + name + " cannot be opened");
}

void write_attribute(hid_t file, const std::string& object, const std::string& name, hid_t type, hid_t space,
                     const void* data) {
  const Id id(
      check(H5Acreate_by_name(file, object.c_str(), name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
            "attribute " + name + " cannot be made"),
      H5Aclose);
  check(H5Awrite(id, type, data), "attribute " + name + " cannot be written");
}

}  // namespace

File File::open(const std::string& path) {
  const Quiet quiet(path);
  FileHandle::open_for_reading(path);  // gives a shorter reason than HDF5 when the file cannot be opened
  const Id access(access_list(), H5Pclose);
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (id < 0)
    throw Error(Exit::data, path + " is not a complete HDF5 file: " + library_words() + "; copy or import it again");
  File file(id, FileHandle());
  file.handle_ = FileHandle(descriptor_copy(id, path), path);
  return file;
}

File File::create(const std::string& path, const std::string& shown_as, Content content) {
  const Quiet quiet(path);
  FileHandle handle = FileHandle::create(path, shown_as.empty() ? path : shown_as, content);
  handle.write_at(0, std::string(kHeadBytes, '\0').data(), kHeadBytes);
  const auto head = std::make_shared<std::string>();
  const Id access(access_list(), H5Pclose);
  describe_in_memory(access, head.get());
  const Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation, false);
  const std::string name = path + " (in memory)";  // of no file: one that is there would be read first, all of it
  const hid_t id = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation, access);
  File file(check(id, handle.path() + " cannot be described"), std::move(handle));
  file.head_ = head;
  return file;
}

File::File(File&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      handle_(std::move(other.handle_)),
      head_(std::move(other.head_)),
      end_(other.end_) {}

File::~File() {
  const Quiet quiet(handle_.path());
  if (id_ >= 0) H5Fclose(id_);
}

void File::close() {
  const Quiet quiet(handle_.path());
  check(H5Fclose(std::exchange(id_, -1)), handle_.path() + " cannot be described");
  PAL_ASSERT(head_->size() == kHeadBytes, "the metadata of " + handle_.path() + " outgrow the head of the file");
  handle_.write_at(0, head_->data(), head_->size());
}

bool File::has(const std::string& name) const {
  const Quiet quiet(handle_.path());
  return link_exists(id_, handle_.path(), name);
}

Extent File::extent(const std::string& name, Type type) const {
  const Quiet quiet(handle_.path());
  const std::string& path = handle_.path();
  PAL_DATA_CHECK(link_exists(id_, path, name), path + " has no data set", name,
                 "`pal data import` makes files that have it");
  const Id dataset(check(H5Dopen2(id_, name.c_str(), H5P_DEFAULT), path + ": " + name + " is not a data set"),
                   H5Dclose);
  const Id list(check(H5Dget_create_plist(dataset), path + ": " + name + " has no layout"), H5Pclose);
  const char* todo = "store it contiguous, without filters, in the file itself";
  PAL_DATA_CHECK(H5Pget_nfilters(list) == 0, path + ": data set {} has a filter", name, todo);
  PAL_DATA_CHECK(H5Pget_layout(list) != H5D_VIRTUAL, path + ": data set {} is virtual", name, todo);
  PAL_DATA_CHECK(H5Pget_layout(list) == H5D_CONTIGUOUS, path + ": data set {} is not contiguous", name, todo);
  PAL_DATA_CHECK(H5Pget_external_count(list) == 0, path + ": data set {} is stored in another file", name, todo);
  const Id stored(H5Dget_type(dataset), H5Tclose);
  PAL_DATA_CHECK(same_type(stored, type), path + ": data set {} has the wrong type", name,
                 std::string("it must be ") + type_name(type));
  const Id space(H5Dget_space(dataset), H5Sclose);
  PAL_DATA_CHECK(H5Sget_simple_extent_ndims(space) == 1, path + ": data set {} has the wrong shape", name,
                 "it must have one axis");

  Extent extent;
  extent.count = H5Sget_simple_extent_npoints(space);
  extent.item_bytes = static_cast<int64_t>(H5Tget_size(stored));
  if (extent.count == 0) return extent;
  extent.offset = H5Dget_offset(dataset);
  // Also bounds what a reader allocates: by the size of the file, not by its header.
  const uint64_t file_bytes = handle_.size();
  const bool inside =
      extent.offset != HADDR_UNDEF && extent.offset <= file_bytes &&
      static_cast<uint64_t>(extent.count) <= (file_bytes - extent.offset) / static_cast<uint64_t>(extent.item_bytes);
  PAL_DATA_CHECK(inside, path + ": the bytes of data set {} are not in the file", name, "copy or import it again");
  return extent;
}

void File::make_group(const std::string& name) {
  const Quiet quiet(handle_.path());
  const Id list(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(list, false);
  const hid_t group = H5Gcreate2(id_, name.c_str(), H5P_DEFAULT, list, H5P_DEFAULT);
  H5Gclose(check(group, handle_.path() + ": group " + name + " cannot be made"));
}

void File::describe(const std::string& name, Type type, int64_t count, int64_t item_bytes, int64_t columns) {
  const Quiet quiet(handle_.path());
  const std::string what = handle_.path() + ": data set " + name + " cannot be made";
  const Id list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(list, false);
  H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
  const hsize_t dims[] = {static_cast<hsize_t>(columns > 0 ? count / columns : count), static_cast<hsize_t>(columns)};
  const Id space(check(H5Screate_simple(columns > 0 ? 2 : 1, dims, nullptr), what), H5Sclose);
  const Id stored(type == Type::text ? text_type(static_cast<size_t>(item_bytes)) : H5Tcopy(file_type(type)), H5Tclose);
  const Id dataset(check(H5Dcreate2(id_, name.c_str(), stored, space, H5P_DEFAULT, list, H5P_DEFAULT), what), H5Dclose);
  PAL_ASSERT(count == 0 || H5Dget_offset(dataset) == end_, "HDF5 puts " + name + " where its bytes are not");
  end_ += static_cast<uint64_t>(count * item_bytes);
}

bool File::has_attribute(const std::string& object, const std::string& name) const {
  const Quiet quiet(handle_.path());
  return link_exists(id_, handle_.path(), object) &&
         H5Aexists_by_name(id_, object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

std::vector<int64_t> File::integers(const std::string& object, const std::string& name) const {
  const Quiet quiet(handle_.path());
  const std::string& path = handle_.path();
  const Id id(open_attribute(id_, path, object, name), H5Aclose);
  const Id stored(H5Aget_type(id), H5Tclose);
  const Id space(H5Aget_space(id), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  PAL_DATA_CHECK(H5Tget_class(stored) == H5T_INTEGER && count >= 0 && count <= 64,
                 path + ": attribute {} has the wrong type", name, "it must be integer");
  std::vector<int64_t> values(static_cast<size_t>(count));
  check(H5Aread(id, H5T_NATIVE_INT64, values.data()), path + ": attribute " + name + " cannot be read");
  return values;
}

std::string File::text(const std::string& object, const std::string& name) const {
  const Quiet quiet(handle_.path());
  const std::string& path = handle_.path();
  const Id id(open_attribute(id_, path, object, name), H5Aclose);
  const Id stored(H5Aget_type(id), H5Tclose);
  const Id space(H5Aget_space(id), H5Sclose);
  const bool one_text = H5Tget_class(stored) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1;
  PAL_DATA_CHECK(one_text, path + ": attribute {} has the wrong type", name, "it must be one text");
  if (H5Tis_variable_str(stored) > 0) {  // what h5py writes for a Python string
    char* value = nullptr;
    check(H5Aread(id, stored, &value), path + ": attribute " + name + " cannot be read");
    const std::string copy = value ? value : "";
    H5free_memory(value);
    return copy;
  }
  std::string value(H5Tget_size(stored), '\0');
  check(H5Aread(id, stored, value.data()), path + ": attribute " + name + " cannot be read");
  return unpack_text(value.data(), static_cast<int64_t>(value.size()));
}

void File::set_integers(const std::string& object, const std::string& name, const std::vector<int64_t>& values) {
  const Quiet quiet(handle_.path());
  const hsize_t dims = values.size();
  const Id space(dims == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, nullptr), H5Sclose);
  write_attribute(id_, object, name, H5T_STD_I64LE, space, values.data());
}

void File::set_text(const std::string& object, const std::string& name, const std::string& value) {
  const Quiet quiet(handle_.path());
  const Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const PackedText packed = pack_text({value});
  const Id type(text_type(static_cast<size_t>(packed.width)), H5Tclose);
  write_attribute(id_, object, name, type, space, packed.bytes.data());
}

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  check(H5get_libversion(&major, &minor, &release), "HDF5 reports no version");
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace pal::io::h5
