#include "core/record/run_info.h"

#include <sys/sysinfo.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/io/cores.h"
#include "core/io/files.h"
#include "core/io/json.h"
#include "kernels/base/error.h"

namespace pal::record {
namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Quotes a word that a shell would split.
std::string typed(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_./=,:+-@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    command += typed(word);
  }
  return command;
}

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');)
    words.push_back(words.empty() ? std::filesystem::path(word).filename().string() : word);
  return command_text(words);
}

RunInfo this_machine(const std::string& ranks) {
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char when[32] = "";
  std::tm utc{};
  std::strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &utc));
  struct sysinfo memory {};
  sysinfo(&memory);
  return {{"pal", PAL_VERSION},
          {"torch", TORCH_VERSION},
          {"host", host},
          {"cpu", cpu_name()},
          {"cores", std::to_string(io::usable_cores())},
          {"memory", std::to_string(static_cast<uint64_t>(memory.totalram) * memory.mem_unit >> 30) + " GB"},
          {"ranks", ranks},
          {"started", when},
          {"command", command_line()}};
}

void add_run_info(const std::string& run_dir, const RunInfo& info) {
  std::vector<RunInfo> all = read_run_info(run_dir);
  all.push_back(info);
  try {
    io::write_file_atomically(run_dir + "/machine.json",
                              nlohmann::json(all).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } catch (const Error&) {
  }
}

std::vector<RunInfo> read_run_info(const std::string& run_dir) {
  std::vector<RunInfo> all;
  const std::string path = run_dir + "/machine.json";
  if (!std::filesystem::exists(path)) return all;
  const auto value = io::parse_json(io::read_whole_file(path));
  if (!value.is_array()) return all;
  for (const auto& entry : value) {
    RunInfo info;
    if (!entry.is_object()) continue;
    for (const auto& [name, word] : entry.items()) {
      if (word.is_string()) info[name] = word;
    }
    all.push_back(std::move(info));
  }
  return all;
}

}  // namespace pal::record
