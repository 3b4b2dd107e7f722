// shard_fuzz: bytes as a shard, which must be refused with an Error or read completely.
//
// With PAL_FUZZ_ACCEPT set, a refused input fails. This proves that the seeds reach the code behind the first check.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/data/shard_reader.h"
#include "core/io/file_handle.h"
#include "kernels/base/error.h"

namespace {

// HDF5 opens files by name and resolves the real path, so an anonymous memory file does not work.
const std::string& shard_path() {
  static const std::string path =
      (::access("/dev/shm", W_OK) == 0 ? "/dev/shm/pal-fuzz-" : "./pal-fuzz-") + std::to_string(::getpid()) + ".h5";
  static const int at_exit = std::atexit([] { ::unlink(shard_path().c_str()); });
  (void)at_exit;
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pal::io::FileHandle::create(shard_path(), "the input").write_at(0, data, size);
  bool accepted = false;
  try {
    const pal::data::ShardReader shard(shard_path());
    shard.check_ids();
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < shard.size(); ++i) {
      try {
        shard.read(i, bytes);
        shard.id(i);
        accepted = true;
      } catch (const pal::Error& error) {
        if (error.code() != pal::Exit::data) throw;
      }
    }
  } catch (const pal::Error& error) {
    if (error.code() != pal::Exit::data) throw;
  }
  if (!accepted && std::getenv("PAL_FUZZ_ACCEPT")) __builtin_trap();
  return 0;
}
