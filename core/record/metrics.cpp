#include "core/record/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io/files.h"
#include "core/io/json.h"
#include "kernels/base/error.h"

namespace pal::record {
namespace {

// Whether a line belongs to the first `step` steps of a resumed run.
bool stays(const std::string& line, int64_t step) {
  const auto value = io::parse_json(line);
  if (!value.is_object() || !value.contains("step") || !value["step"].is_number_integer()) return false;
  return value["step"].get<int64_t>() <= step && !value.contains("done");
}

// Of this process, in memory now.
double resident_mb() {
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace

MetricsWriter::MetricsWriter(const std::string& path, int64_t step)
    : path_(path),
      board_(std::make_unique<TensorboardWriter>((std::filesystem::path(path).parent_path() / "tb").string(), step)) {
  if (std::filesystem::exists(path)) {
    const std::string before = io::read_whole_file(path);
    std::istringstream lines(before);
    std::string after;
    for (std::string line; std::getline(lines, line);)
      if (stays(line, step)) after += line + "\n";
    if (after != before) io::write_file_atomically(path, after);
  }
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  PAL_CHECK(file_ >= 0, "cannot write " + path, std::strerror(errno), "choose a run folder you may write to");
}

MetricsWriter::~MetricsWriter() {
  if (file_ >= 0) close(file_);
}

void MetricsWriter::write(const StepMetrics& m) {
  nlohmann::ordered_json terms = nlohmann::ordered_json::object();
  for (const auto& [name, value] : m.terms) terms[name] = value;
  nlohmann::ordered_json line = {{"step", m.step},
                                 {"epoch", m.epoch},
                                 {"loss", m.loss},
                                 {"terms", terms},
                                 {"lr", m.lr},
                                 {"images_per_s", m.images_per_s},
                                 {"seconds", m.seconds},
                                 {"graph_version", m.graph_version},
                                 {"queries", m.queries},
                                 {"cost", m.cost},
                                 {"effective_rank", m.effective_rank},
                                 {"sync_ms", m.sync_ms},
                                 {"sync_hidden", m.sync_hidden}};
  line["memory_mb"] = resident_mb();
  for (const auto& [name, value] : m.diagnostics) line[name] = value;
  if (!m.warning.empty()) line["warning"] = m.warning;
  append(line.dump());

  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : line.items()) {
    if (value.is_number() && name != "step") scalars.emplace_back(name, value.get<double>());
  }
  for (const auto& [name, value] : m.terms) scalars.emplace_back("terms/" + name, value);
  board_->write(m.step, scalars);
}

void MetricsWriter::finish(int64_t step, const std::string& weights_sha256, double seconds) {
  append(
      nlohmann::ordered_json{{"step", step}, {"done", true}, {"weights_sha256", weights_sha256}, {"seconds", seconds}}
          .dump());
  PAL_CHECK(fsync(file_) == 0 || errno == EINVAL, "cannot write " + path_, std::strerror(errno), "check the disk");
}

// In one call, so that a reader sees whole lines.
void MetricsWriter::append(const std::string& line) {
  const std::string text = line + "\n";
  const off_t before = lseek(file_, 0, SEEK_END);
  ssize_t done = 0;
  do {
    done = ::write(file_, text.data(), text.size());
  } while (done < 0 && errno == EINTR);
  if (done >= 0 && done != static_cast<ssize_t>(text.size()) && before >= 0 && ftruncate(file_, before) != 0)
    errno = EIO;  // no half line
  PAL_CHECK(done == static_cast<ssize_t>(text.size()), "cannot write " + path_,
            done < 0 ? std::strerror(errno) : "the disk is full",
            "free some space there, or choose another run folder");
}

}  // namespace pal::record
