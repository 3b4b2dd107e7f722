// h5_foreign: reads HDF5 files of other programs, through HDF5 itself, and trusts nothing in them.
//
// Any layout and integer type, and the filters that HDF5 brings along (deflate, shuffle, Fletcher32). As in h5.h,
// everything that refers outside of the file or runs code is refused: external and soft links, external storage,
// virtual data sets, other filters.
// Thread: HDF5 has one global lock; several threads may call read_bytes(), and HDF5 runs one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pal::io::h5 {

class ForeignFile {
 public:
  explicit ForeignFile(const std::string& path);
  ~ForeignFile();
  ForeignFile(const ForeignFile&) = delete;

  const std::string& path() const { return path_; }
  bool has(const std::string& name) const;
  struct Member {
    std::string name;  // without the group's
    enum Kind { group, data_set } kind;
  };
  std::vector<Member> members(const std::string& group) const;  // sorted by name

  std::vector<int64_t> shape(const std::string& name) const;
  bool written(const std::string& name) const;  // false: parts of the array are not stored and would be read as zeros
  std::vector<int64_t> integers(const std::string& name) const;  // a list of any integer type
  // All of an array of any float type and shape; `values` has its size.
  void read_floats(const std::string& name, std::span<float> values) const;
  // Element `row` of a list of byte strings of any length.
  void read_bytes(const std::string& name, int64_t row, std::vector<uint8_t>& bytes) const;
  // All of an array of bytes of any shape.
  void read_bytes(const std::string& name, std::vector<uint8_t>& bytes) const;

 private:
  std::string path_;
  int64_t id_ = -1;
};

}  // namespace pal::io::h5
