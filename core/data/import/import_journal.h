// import_journal: what an import has done, so that the next process goes on where a killed one stopped.
//
// A text file in the folder of the import's staged shards: a line for each image, after its bytes are in its shard, and
// one for each finished shard; each line has its checksum. It begins with a fingerprint of the source and the options:
// another one starts anew. A torn line and all behind it do not count. The file is locked: one import at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/import/image_converter.h"

namespace pal::data {

struct JournalImage {
  uint64_t bytes = 0;  // 0: left out
  uint32_t crc = 0;
  std::vector<Oddity> oddities;
};

class ImportJournal {
 public:
  // Makes the folder, or takes over what is there. Throws Error (usage) when another process is at it.
  ImportJournal(std::string folder, const std::string& fingerprint);
  ~ImportJournal();
  ImportJournal(const ImportJournal&) = delete;

  const std::string& folder() const { return folder_; }
  const std::vector<JournalImage>& images() const { return images_; }  // of the plan's first ones
  int64_t finished_shards() const { return finished_shards_; }
  bool publishing() const { return publishing_; }

  void forget_from(int64_t image);         // those behind it are to be done again
  void append(const JournalImage& image);  // held until flush()
  void flush();
  void finish_shard();
  void begin_publishing();  // from here on shards get their names; on the disk when it returns
  void remove();            // with the folder and all in it

 private:
  void read(const std::string& header);
  void parse(const std::string& line);
  void write_line(const std::string& text);

  std::string folder_, path_;
  int descriptor_ = -1;
  std::string waiting_;
  uint64_t end_ = 0;  // of what counts in the file
  std::vector<JournalImage> images_;
  std::vector<uint64_t> begins_;  // where each image's line begins
  int64_t finished_shards_ = 0;
  bool publishing_ = false;
};

}  // namespace pal::data
