// shard_fuzz: any bytes as a shard: refused with an Error, or every sample of it read.
//
// With PAL_FUZZ_ACCEPT set a refused input fails: so the seeds are known to reach the code behind the first check.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/data/shard_reader.h"
#include "core/io/file_handle.h"
#include "kernels/base/error.h"

namespace {

// HDF5 opens names only, and asks the system for their true path: a memory file without one does not do.
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
