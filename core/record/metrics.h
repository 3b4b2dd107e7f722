// metrics: writes metrics.jsonl, one JSON object per line, and the same scalars as TensorBoard files in tb/.
//
// Numbers that are not finite are null. The operating system has a line when write() returns. The last line of a
// finished run has "done": true.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pal::record {

struct StepMetrics {
  int64_t step = 0;  // steps done
  double epoch = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> terms;
  double lr = 0;
  double images_per_s = 0;
  double seconds = 0;  // since this process began the run or resumed it
  uint64_t graph_version = 0;
  int64_t queries = 0;
  double cost = 0;
  double effective_rank = 0;
  std::vector<std::pair<std::string, double>> diagnostics;  // of the embeddings and the graph, by name
  std::string warning;                                      // "": none
  double sync_ms = 0;                                       // of this step's gradient sums
  double sync_hidden = 0;  // fraction of it that overlapped with backward; not finite: nothing was sent
};

// Scalars in an event file that TensorBoard opens.
//
// Format: TFRecord (length, masked CRC32C of it, bytes, masked CRC32C of them) of Event messages, written by hand: four
//   fields of protobuf need no library. A resumed run writes another file, which begins with a START mark at its step:
//   TensorBoard then drops the earlier values from that step on.
class TensorboardWriter {
 public:
  // Makes `folder` and, at the first write, a file in it. `first_step`: steps done before.
  TensorboardWriter(std::string folder, int64_t first_step);
  ~TensorboardWriter();
  TensorboardWriter(const TensorboardWriter&) = delete;
  TensorboardWriter& operator=(const TensorboardWriter&) = delete;

  // Non-finite values are written unchanged: TensorBoard shows where they occurred.
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

class MetricsWriter {
 public:
  // Continues after `step`: removes (atomically) lines of later steps, the line of an earlier end, and half lines.
  MetricsWriter(const std::string& path, int64_t step);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void write(const StepMetrics& metrics);
  // The closing line, synced to disk; seconds since this process began the run or resumed it.
  void finish(int64_t step, const std::string& weights_sha256, double seconds);

 private:
  void append(const std::string& line);

  const std::string path_;
  int file_ = -1;
  std::unique_ptr<TensorboardWriter> board_;  // the folder tb/ beside the file
};

}  // namespace pal::record
