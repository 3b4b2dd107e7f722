#include "tests/simgpu/runtime/counters.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "tests/simgpu/runtime/stand_in.h"

namespace simgpu {
namespace {

constexpr const char* kKinds[] = {"launch",     "op",         "copy",   "wait", "read",
                                  "collective", "allocation", "thread", "sleep"};

struct Tally {
  long times = 0;
  size_t bytes = 0;
};

struct Table {
  std::mutex mutex;
  std::string folder;
  std::vector<std::string> ranges;
  long outermost = 0;  // ranges so far
  std::map<std::tuple<std::string, int, std::string>, Tally> tallies;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

Table& table();

void write_table() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto on_device = [](const auto& entry) { return std::get<1>(entry.first) < static_cast<int>(Count::thread); };
  if (std::none_of(t.tallies.begin(), t.tallies.end(), on_device)) return;  // not a rank, but what started the ranks
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  std::FILE* file = std::fopen((t.folder + "/rank-" + (rank == nullptr ? "0" : rank) + ".json").c_str(), "w");
  if (file == nullptr) return;
  const char* separator = "[\n";
  for (const auto& [key, tally] : t.tallies) {
    const auto& [phase, kind, what] = key;
    std::fprintf(file, "%s{\"phase\": %s, \"kind\": \"%s\", \"what\": %s, \"times\": %ld, \"bytes\": %zu}", separator,
                 quoted(phase).c_str(), kKinds[kind], quoted(what).c_str(), tally.times, tally.bytes);
    separator = ",\n";
  }
  std::fputs(t.tallies.empty() ? "[]\n" : "\n]\n", file);
  std::fclose(file);
}

Table& table() {
  static Table* const t = [] {
    auto* made = new Table;
    if (const char* folder = std::getenv("SIMGPU_COUNTERS")) made->folder = folder;
    if (!made->folder.empty()) std::atexit(write_table);
    return made;
  }();
  return *t;
}

int& quiet() {
  static thread_local int depth = 0;
  return depth;
}

}  // namespace

bool counting() { return !table().folder.empty() && quiet() == 0; }

void count_event(Count kind, const std::string& what, size_t bytes) {
  if (!counting()) return;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  std::string phase;
  for (const std::string& range : t.ranges) phase += (phase.empty() ? "" : "/") + range;
  Tally& tally = t.tallies[{phase, static_cast<int>(kind), what}];
  ++tally.times;
  tally.bytes += bytes;
}

namespace {

int NVTX_API push_range(const char* name) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.ranges.push_back(t.ranges.empty() ? std::string(name) + " " + std::to_string(++t.outermost) : name);
  return static_cast<int>(t.ranges.size()) - 1;
}

int NVTX_API pop_range() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  if (!t.ranges.empty()) t.ranges.pop_back();
  return static_cast<int>(t.ranges.size());
}

}  // namespace
}  // namespace simgpu

extern "C" {

void simgpu_count(int kind, const char* what, size_t bytes) {
  simgpu::count_event(static_cast<simgpu::Count>(kind), what, bytes);
}

int simgpu_counts(void) { return simgpu::counting() ? 1 : 0; }

void simgpu_quiet(int change) { simgpu::quiet() += change; }

// NVTX calls this in a process that uses ranges. Reference: nvtx3/nvtxDetail/nvtxTypes.h.
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE_RangePop) return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(simgpu::push_range);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(simgpu::pop_range);
  return 1;
}

}  // extern "C"
