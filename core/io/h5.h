// h5: HDF5 files as this project uses them: 1-D contiguous arrays, fixed-length strings, small attributes.
//
// Only h5.cpp includes hdf5.h. HDF5 keeps the metadata; pread and pwrite move the bytes, outside its global lock. HDF5
// builds the metadata of a new file in memory, and close() writes it as the head of the file: a full disk is then an
// error of pwrite, never of HDF5 (which cannot close a file that it cannot write, and crashes at exit).
// Every failure is pal::Error (data) with the library's message; HDF5 itself prints nothing. Written files hold no
// time stamps: the same calls make the same bytes. Files are opened without locks (network file systems), plug-ins are
// off, and everything that refers outside of the file or runs code is refused: external and soft links, external
// storage, virtual data sets, filters; so is every layout but contiguous.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/io/file_handle.h"

namespace pal::io::h5 {

std::string library_version();  // "1.10.8"

enum class Type { u8, u32, u64, i32, i64, f32, f64, text };

// Where a data set's bytes are. The range lies inside the file (checked).
struct Extent {
  uint64_t offset = 0;
  int64_t count = 0;
  int64_t item_bytes = 0;
};

// The metadata of a written file has its first kHeadBytes (enough for twenty data sets): data sets follow one another
// from there without gaps, in the order of their creation.
inline constexpr uint64_t kHeadBytes = 8192;

class File {
 public:
  static File open(const std::string& path);  // to read
  static File create(const std::string& path, const std::string& shown_as = "",
                     Content content = Content::discard);  // errors name `shown_as`
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();       // closes without reporting a failure; a writer calls close()
  void close();  // writes the head; the handle stays open

  FileHandle& handle() { return handle_; }
  const FileHandle& handle() const { return handle_; }

  bool has(const std::string& name) const;
  // The data set must be 1-D and of exactly this type (text: any width).
  Extent extent(const std::string& name, Type type) const;
  template <class T>
  std::vector<T> read(const std::string& name) const;
  std::vector<std::string> read_text(const std::string& name) const;

  void make_group(const std::string& name);
  uint64_t end() const { return end_; }  // where the next data set will begin
  // Makes a data set at end() of values that the caller has written there before. item_bytes: the width of text. With
  // columns it has two axes, (count / columns, columns), row by row.
  void describe(const std::string& name, Type type, int64_t count, int64_t item_bytes, int64_t columns = 0);
  template <class T>
  void write(const std::string& name, const std::vector<T>& values);
  void write_text(const std::string& name, const std::vector<std::string>& values);

  // Attributes of a group or data set; "/" is the file's own.
  bool has_attribute(const std::string& object, const std::string& name) const;
  std::vector<int64_t> integers(const std::string& object, const std::string& name) const;
  std::string text(const std::string& object, const std::string& name) const;
  void set_integers(const std::string& object, const std::string& name, const std::vector<int64_t>& values);
  void set_text(const std::string& object, const std::string& name, const std::string& value);

 private:
  File(int64_t id, FileHandle handle) : id_(id), handle_(std::move(handle)) {}

  int64_t id_ = -1;
  FileHandle handle_;
  std::shared_ptr<std::string> head_;  // of a new file: HDF5 stores the metadata here when it closes
  uint64_t end_ = kHeadBytes;
};

template <class T>
constexpr Type type_of();
template <>
constexpr Type type_of<uint8_t>() {
  return Type::u8;
}
template <>
constexpr Type type_of<uint32_t>() {
  return Type::u32;
}
template <>
constexpr Type type_of<uint64_t>() {
  return Type::u64;
}
template <>
constexpr Type type_of<int32_t>() {
  return Type::i32;
}
template <>
constexpr Type type_of<int64_t>() {
  return Type::i64;
}
template <>
constexpr Type type_of<float>() {
  return Type::f32;
}
template <>
constexpr Type type_of<double>() {
  return Type::f64;
}

// Fixed-length strings as they are stored: each padded with zeros to the longest (at least one byte).
struct PackedText {
  std::string bytes;
  int64_t width = 1;
};
PackedText pack_text(const std::vector<std::string>& values);
std::string unpack_text(const char* item, int64_t width);

}  // namespace pal::io::h5
