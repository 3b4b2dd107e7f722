#include "launch/doctor/gpu_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "launch/process/mpirun.h"

namespace pal::launch {
namespace {

using Json = nlohmann::ordered_json;

const char* state_name(GpuPart::State state) {
  switch (state) {
    case GpuPart::State::passed:
      return "ok";
    case GpuPart::State::failed:
      return "WRONG";
    case GpuPart::State::ended:
      return "ENDED HERE";
    case GpuPart::State::not_run:
      return "not run";
  }
  return "";
}

// The lines of a rank's log; a line that was cut by the end of the process is left out.
std::vector<Json> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) {
    Json value = Json::parse(line, nullptr, false);
    if (value.is_object()) lines.push_back(std::move(value));
  }
  return lines;
}

}  // namespace

#ifndef PAL_WITH_CUDA
void run_gpu_parts(dist::World&, const GpuOptions&) {
  PAL_ASSERT(false, "a build without CUDA has no part that runs on a GPU");
}
#endif

int start_gpu_parts(const std::string& program, int ranks, const GpuOptions& options) {
  std::vector<std::string> args = {"doctor", "--gpu-rank", "--folder", options.folder};
  if (options.quick) args.push_back("--quick");
  return run_under_mpirun(program, args, ranks, 1);
}

std::vector<GpuPart> read_gpu_parts(const std::string& folder, int ranks) {
  std::vector<GpuPart> parts;
  bool explained = false;
  for (int r = 0; r < ranks; ++r) {
    GpuPart start;
    start.rank = r;
    start.part = "start";
    start.found = "this rank did not start";
    size_t begun = 0;
    for (const Json& line : lines_of(folder + "/rank-" + std::to_string(r) + ".jsonl")) {
      if (line.contains("host")) {
        start.host = line["host"].get<std::string>();
        start.device = line["device"].get<std::string>();
        continue;
      }
      GpuPart part = start;
      part.part = line["part"].get<std::string>();
      part.found = "the process ended in this part";
      if (line.contains("state")) {
        parts.pop_back();
        part.state = static_cast<GpuPart::State>(line["state"].get<int>());
        part.found = line["found"].get<std::string>();
        part.seconds = line["seconds"].get<double>();
        part.rows = line["rows"].get<std::vector<std::vector<std::string>>>();
        explained = explained || part.state == GpuPart::State::failed;
      }
      ++begun;
      parts.push_back(std::move(part));
    }
    if (begun == 0) parts.push_back(std::move(start));
  }
  // An error of one rank ends the others: theirs is no error of their own.
  for (GpuPart& part : parts) {
    if (explained && part.state == GpuPart::State::ended) {
      part.state = GpuPart::State::not_run;
      part.found = "another rank's error ended the job";
    }
  }
  return parts;
}

bool all_passed(const std::vector<GpuPart>& parts) {
  for (const GpuPart& part : parts) {
    if (part.state != GpuPart::State::passed) return false;
  }
  return !parts.empty();
}

std::vector<std::vector<std::string>> gpu_part_rows(const std::vector<GpuPart>& parts) {
  std::vector<std::vector<std::string>> rows = {{"part", "where", "state", "seconds", "found"}};
  std::vector<std::string> names;
  for (const GpuPart& part : parts) {
    if (std::find(names.begin(), names.end(), part.part) == names.end()) names.push_back(part.part);
  }
  for (const std::string& name : names) {
    std::vector<GpuPart> same;
    for (const GpuPart& part : parts) {
      if (part.part == name) same.push_back(part);
    }
    double seconds = 0;
    for (const GpuPart& part : same) seconds = std::max(seconds, part.seconds);
    if (all_passed(same)) {
      const std::string where = same.size() == 1 ? same[0].device : fmt::format("all {} devices", same.size());
      rows.push_back({name, where, "ok", fmt::format("{:.1f}", seconds), same[0].found});
      continue;
    }
    for (const GpuPart& part : same) {
      rows.push_back({name, fmt::format("rank {}, host {}, {}", part.rank, part.host, part.device),
                      state_name(part.state), fmt::format("{:.1f}", part.seconds), part.found});
    }
  }
  return rows;
}

namespace detail {

void Wrong::add(const std::string& sentence) { sentences_.push_back(sentence); }

void Wrong::compare(const std::string& what, double off, double allowed) {
  if (!(off <= allowed)) add(fmt::format("{} is {:.2g} from the CPU's result, {:.2g} is allowed", what, off, allowed));
}

Checked Wrong::result(const std::string& found) const {
  if (sentences_.empty()) return {true, found, {}};
  return {false,
          sentences_.size() == 1 ? sentences_[0] : fmt::format("{}; and {} more", sentences_[0], sentences_.size() - 1),
          {}};
}

}  // namespace detail

}  // namespace pal::launch
