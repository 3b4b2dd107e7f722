// metrics: metrics.jsonl, one JSON object a line; numbers that are not finite are null. The same as TensorBoard files in tb/.
//
// A line is on its way to the disk when write() returns. The last line of a finished run has "done": true.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pal::record {

class TensorboardWriter;

struct StepMetrics {
  int64_t step = 0;  // steps done
  double epoch = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> terms;
  double lr = 0;
  double images_per_s = 0;
  uint64_t graph_version = 0;
  int64_t queries = 0;
  double cost = 0;
  double effective_rank = 0;
  std::vector<std::pair<std::string, double>> diagnostics;  // of the embeddings and the graph, by name
  std::string warning;                                      // "": none
  double sync_ms = 0;                                       // of this step's gradient sums
  double sync_hidden = 0;                                   // share of it behind backward; not finite: nothing was sent
};

class MetricsWriter {
 public:
  // Goes on after `step`: lines of later steps, of an earlier end, and half lines are removed (atomically).
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
