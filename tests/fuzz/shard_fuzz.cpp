// shard_fuzz: any bytes as a shard: refused with an Error, or every sample of it read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/shard_reader.h"
#include "kernels/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = ::memfd_create("shard", 0);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  try {
    const pal::ShardReader shard("/proc/self/fd/" + std::to_string(file));
    shard.check_ids();
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < shard.size(); ++i) {
      try {
        shard.read(i, bytes);
        shard.id(i);
      } catch (const pal::Error& error) {
        if (error.code() != pal::Exit::data) throw;
      }
    }
  } catch (const pal::Error& error) {
    if (error.code() != pal::Exit::data) throw;
  }
  ::close(file);
  return 0;
}
