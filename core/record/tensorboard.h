// tensorboard: scalars in an event file that TensorBoard opens.
//
// Format: TFRecord (length, masked CRC32C of it, bytes, masked CRC32C of them) of Event messages, written by hand: four
//   fields of protobuf need no library. A run that goes on writes a further file which begins with a START mark at its
//   step: TensorBoard then forgets what an earlier file had from that step on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pal::record {

class TensorboardWriter {
 public:
  // Makes `folder` and, at the first write, a file in it. `first_step`: steps done before.
  TensorboardWriter(std::string folder, int64_t first_step);
  ~TensorboardWriter();
  TensorboardWriter(const TensorboardWriter&) = delete;
  TensorboardWriter& operator=(const TensorboardWriter&) = delete;

  // Values that are not finite are written as they are: TensorBoard shows where they happened.
  void write(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void open();
  void record(const std::string& event);

  const std::string folder_;
  const int64_t first_step_;
  std::string path_;
  int file_ = -1;
};

// A message of the event file, framed: for tests of the format.
std::string tensorboard_record(const std::string& event);

}  // namespace pal::record
