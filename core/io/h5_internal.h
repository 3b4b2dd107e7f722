// h5_internal: shared by the files that call HDF5: quiet errors, owned identifiers, safe access, plain links.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <string>

#include "core/io/crash_guard.h"
#include "core/io/h5.h"
#include "kernels/base/error.h"

namespace pal::io::h5 {

// Turns HDF5's printing off on this thread (its error stack is per thread) and restores it. It also turns HDF5's
// cleanup at exit off: there is nothing to save, and after a damaged file it prints "infinite loop closing library". A
// crash of HDF5 on `path` is a sentence.
class Quiet {
 public:
  explicit Quiet(const std::string& path) : guard_("HDF5", path) {
    H5dont_atexit();
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Quiet(const Quiet&) = delete;

 private:
  const CrashGuard guard_;
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// The innermost entry of HDF5's error stack holds the reason; the outer ones only hold places.
inline std::string library_words() {
  std::string words;
  const auto take_first = [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
    if (n == 0 && error->desc) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &words);
  return words.empty() ? "no reason given" : words;
}

template <class R>
R check(R result, const std::string& what) {
  if (result < 0) throw Error(Exit::data, what + ": " + library_words() + "; the file may be damaged or the disk full");
  return result;
}

// Owns an HDF5 identifier.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  Id(const Id&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

inline hid_t access_list() {
  H5PLset_loading_state(0);  // no filter plug-in is ever loaded
  const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_file_locking(list, false, true);
  H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
  // The format of HDF5 1.8: its metadata has checksums, and every reader in use knows it.
  H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_meta_block_size(list, kHeadBytes);
  H5Pset_small_data_block_size(list, 0);
  return list;
}

// Whether `name` is there; each step of the path must be a plain (hard) link.
inline bool link_exists(hid_t file, const std::string& path, const std::string& name) {
  if (name == "/") return true;
  for (size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    const std::string step = name.substr(0, end);
    if (H5Lexists(file, step.c_str(), H5P_DEFAULT) <= 0) return false;
    H5L_info_t info{};
    check(H5Lget_info(file, step.c_str(), &info, H5P_DEFAULT), path + ": link " + step + " cannot be read");
    PAL_DATA_CHECK(info.type == H5L_TYPE_HARD, path + ": {} is a link to another place", step,
                   "store the data in the file itself");
  }
  return true;
}

}  // namespace pal::io::h5
