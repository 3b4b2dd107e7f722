#include "launch/run/output_file.h"

#include "core/io/files.h"

namespace pal::launch {

OutputFile::OutputFile(const std::string& path, uint64_t bytes) : part_(path) {
  const std::string room(bytes, '\0');
  io::FileWriter file(part_.path());
  file.write(room.data(), room.size());
  file.finish();
}

void OutputFile::write(std::string_view content) {
  io::FileWriter file(part_.path());
  file.write(content.data(), content.size());
  file.finish();
  publish();
}

}  // namespace pal::launch
