#include "dist/health/consistency.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string_view>
#include <thread>

#include "core/io/crc32c.h"
#include "core/io/files.h"
#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

namespace fs = std::filesystem;

// Each rank's value, by rank.
std::vector<uint64_t> of_all(uint64_t value, comm::Comm& comm) {
  const at::Tensor all = comm.all_gather(at::full({1}, static_cast<int64_t>(value), at::kLong));
  std::vector<uint64_t> values;
  for (int r = 0; r < comm.size(); ++r) values.push_back(static_cast<uint64_t>(all.data_ptr<int64_t>()[r]));
  return values;
}

// Ranks whose value is not rank 0's.
std::vector<int> other_than_first(const std::vector<uint64_t>& values) {
  std::vector<int> ranks;
  for (size_t r = 0; r < values.size(); ++r) {
    if (values[r] != values[0]) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

std::string broadcast_text(std::string text, int root, comm::Comm& comm) {
  at::Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  comm.broadcast(size, root);
  at::Tensor bytes = at::zeros({size.data_ptr<int64_t>()[0]}, at::kByte);
  if (comm.rank() == root) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  comm.broadcast(bytes, root);
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

std::string list_of(const std::vector<int>& ranks, int size) {
  const size_t shown = std::min<size_t>(ranks.size(), 8);
  return fmt::format("rank{} {}{} of {}", ranks.size() == 1 ? "" : "s",
                     fmt::join(ranks.begin(), ranks.begin() + shown, ", "), ranks.size() > shown ? ", …" : "", size);
}

// A mixture of 64-bit words with position; not cryptographic.
uint64_t checksum(const at::Tensor& t) {
  const at::Tensor bits = t.detach().cpu();
  const auto* bytes = static_cast<const unsigned char*>(bits.const_data_ptr());
  const size_t size = bits.nbytes();
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + 32 <= size; at += 32) {
    uint64_t w[4];
    std::memcpy(w, bytes + at, 32);
    for (int k = 0; k < 4; ++k) lanes[k] = (lanes[k] ^ w[k]) * 0x9E3779B97F4A7C15ull;
  }
  for (; at < size; ++at) lanes[0] = (lanes[0] ^ bytes[at]) * 0x100000001B3ull;
  return lanes[0] ^ std::rotl(lanes[1], 57) ^ std::rotl(lanes[2], 9) ^
         std::rotl(lanes[3], 43);  // rotated, so that the sign bits of the lanes do not cancel
}

// A setting as the ranks must have it in common: each node may have a scratch folder of its own name, or all have none.
std::string shared_setting(const config::Config& config, const std::string& key) {
  return key == "data.stage" ? (config.has(key) ? "set" : "") : config.formatted(key);
}

// A hash for each key, in the order of the table of keys, which every rank has: they run the same program.
at::Tensor setting_hashes(const config::Config& config) {
  const auto& keys = config::config_keys();
  at::Tensor hashes = at::zeros({static_cast<int64_t>(keys.size())}, at::kLong);
  for (size_t k = 0; k < keys.size(); ++k)
    hashes.data_ptr<int64_t>()[k] =
        static_cast<int64_t>(std::hash<std::string>{}(shared_setting(config, keys[k].name)));
  return hashes;
}

constexpr const char* kSameStart = "start every rank with the same files and arguments";
constexpr const char* kRestart = "check the memory of its host; a restart continues from the last checkpoint";

}  // namespace

void check_same_program(comm::Comm& comm) {
  if (comm.size() == 1) return;
  const std::string self = io::read_whole_file("/proc/self/exe");
  const std::vector<int> others = other_than_first(of_all(io::crc32c(self.data(), self.size()), comm));
  PAL_CHECK(others.empty(), "the ranks do not run the same program",
            list_of(others, comm.size()) + " differs from rank 0", "install one build on every host");
}

void check_same_config(const config::Config& config, comm::Comm& comm) {
  if (comm.size() == 1) return;
  const at::Tensor mine = setting_hashes(config);
  const std::string_view bytes(static_cast<const char*>(mine.const_data_ptr()), mine.nbytes());
  const std::vector<int> others = other_than_first(of_all(std::hash<std::string_view>{}(bytes), comm));
  if (others.empty()) return;
  at::Tensor first = mine.clone();
  comm.broadcast(first, 0);
  std::string keys;
  if (comm.rank() == others.front()) {
    std::vector<std::string> differing;
    for (int64_t k = 0; k < mine.numel(); ++k) {
      if (mine.data_ptr<int64_t>()[k] != first.data_ptr<int64_t>()[k])
        differing.push_back(config::config_keys()[static_cast<size_t>(k)].name);
    }
    keys = fmt::format("{}", fmt::join(differing, ", "));
  }
  keys = broadcast_text(keys, others.front(), comm);
  throw Error(Exit::usage, fmt::format("the ranks do not agree on the config: {} differs from rank 0 in {}; {}",
                                       list_of(others, comm.size()), keys, kSameStart));
}

void check_same_data(uint64_t fingerprint, const std::string& what, comm::Comm& comm) {
  const std::vector<int> others = other_than_first(of_all(fingerprint, comm));
  PAL_DATA_CHECK(others.empty(), "the ranks do not agree on " + what,
                 list_of(others, comm.size()) + " reads another one than rank 0", "copy the same files to every host");
}

void check_same_folder(const std::string& path, comm::Comm& comm) {
  if (comm.size() == 1) return;
  const std::string file = path + "/.shared";
  std::string token;
  if (comm.rank() == 0) {
    token = std::to_string(std::random_device{}()) + "-" + std::to_string(getpid());
    io::write_file_atomically(file, token);
  }
  token = broadcast_text(token, 0, comm);
  // Network file systems may show a new file late.
  bool seen = false;
  for (int tenth = 0; tenth < 30 && !seen; ++tenth) {
    if (tenth > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::error_code error;
    seen = fs::exists(file, error) && io::read_whole_file(file) == token;
  }
  const std::vector<int> others = other_than_first(of_all(seen ? 1 : 0, comm));
  if (comm.rank() == 0) unlink(file.c_str());
  PAL_CHECK(others.empty(), "the run folder " + path + " is not shared by all ranks",
            list_of(others, comm.size()) + " does not see rank 0's",
            "give --run-dir as an absolute path on a file system that every host has");
}

void check_same_parameters(const ops::NamedTensors& parameters, int64_t step, comm::Comm& comm) {
  if (comm.size() == 1) return;
  uint64_t sum = 0;
  for (const auto& named : parameters) sum = (sum ^ checksum(named.second)) * 0x9E3779B97F4A7C15ull;
  const std::vector<int> others = other_than_first(of_all(sum, comm));
  PAL_CHECK_CODE(Exit::lost, others.empty(), fmt::format("the parameters differ between ranks after step {}", step),
                 list_of(others, comm.size()) + " differs from rank 0", kRestart);
}

void check_same_graph(uint64_t fingerprint, comm::Comm& comm) {
  const std::vector<int> others = other_than_first(of_all(fingerprint, comm));
  PAL_CHECK_CODE(Exit::lost, others.empty(), "the graph of answers differs between ranks",
                 list_of(others, comm.size()) + " differs from rank 0", kRestart);
}

}  // namespace pal::dist
