#include "launch/run/output_file.h"

#include "core/io/files.h"

namespace pal::launch {

OutputFile::OutputFile(const std::string& path, uint64_t bytes) : part_(path) {
  const std::string room(bytes, '\0');
  io::FileHandle file = io::FileHandle::create(part_.path(), path);
  file.write_at(0, room.data(), room.size());
  file.sync();
}

void OutputFile::write(std::string_view content) {
  io::FileWriter file(part_.path());
  file.write(content.data(), content.size());
  file.finish();
  publish();
}

}  // namespace pal::launch
