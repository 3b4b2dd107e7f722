#include "dist/comm/nccl_probe.h"

#include <algorithm>
#include <cstdio>

#include "dist/comm/mpi_check.h"
#include "kernels/base/cuda_check.h"

namespace pal::dist {
namespace {

std::string text(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

// A device buffer and events for the length of a probe.
struct Memory {
  float* data = nullptr;
  explicit Memory(int64_t count) { PAL_CUDA_CHECK(cudaMalloc(&data, static_cast<size_t>(count) * sizeof(float))); }
  ~Memory() { cudaFree(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

struct Timer {
  cudaEvent_t begin = nullptr, end = nullptr;
  Timer() {
    PAL_CUDA_CHECK(cudaEventCreate(&begin));
    PAL_CUDA_CHECK(cudaEventCreate(&end));
  }
  ~Timer() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
};

void fill(float* data, const std::vector<float>& values, NcclChannel& channel) {
  PAL_CUDA_CHECK(
      cudaMemcpyAsync(data, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, channel.stream()));
}

// The first all-reduce is checked, then `repeats` of them are timed; their values, which grow in place, are not
// checked.
ProbeTime probe_one(NcclChannel& channel, MPI_Comm comm, const std::vector<float>& given, const float* from, float* to,
                    const NcclProbeOptions& options) {
  const auto count = static_cast<int64_t>(given.size());
  const auto reduce = [&] { channel.all_reduce(from, to, count, NcclType::float32); };
  fill(const_cast<float*>(from), given, channel);
  reduce();
  channel.wait();
  std::vector<float> got(given.size());
  PAL_CUDA_CHECK(cudaMemcpyAsync(got.data(), to, got.size() * sizeof(float), cudaMemcpyDeviceToHost, channel.stream()));
  PAL_CUDA_CHECK(cudaStreamSynchronize(channel.stream()));
  ProbeTime time;
  time.wrong = count_wrong(got, channel.size());

  fill(const_cast<float*>(from), std::vector<float>(given.size(), 0), channel);
  for (int k = 0; k < options.warmup; ++k) reduce();
  channel.wait();
  PAL_MPI_CHECK(MPI_Barrier(comm));
  const Timer timer;
  PAL_CUDA_CHECK(cudaEventRecord(timer.begin, channel.stream()));
  for (int k = 0; k < options.repeats; ++k) reduce();
  PAL_CUDA_CHECK(cudaEventRecord(timer.end, channel.stream()));
  channel.wait();
  PAL_CUDA_CHECK(cudaEventSynchronize(timer.end));
  float milliseconds = 0;
  PAL_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, timer.begin, timer.end));
  time.seconds = 1e-3 * static_cast<double>(milliseconds) / options.repeats;
  PAL_MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &time.seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
  PAL_MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &time.wrong, 1, MPI_INT64_T, MPI_SUM, comm));
  return time;
}

}  // namespace

double algorithm_bandwidth(int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0;
}
double bus_bandwidth(int64_t bytes, double seconds, int ranks) {
  return algorithm_bandwidth(bytes, seconds) * 2 * (ranks - 1) / ranks;
}

float probe_given(int rank, int64_t i) { return static_cast<float>(i % 97 + rank); }
float probe_sum(int ranks, int64_t i) {
  return static_cast<float>(ranks * (i % 97) + int64_t{ranks} * (ranks - 1) / 2);
}

int64_t count_wrong(const std::vector<float>& got, int ranks) {
  int64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += got[i] == probe_sum(ranks, static_cast<int64_t>(i)) ? 0 : 1;
  return wrong;
}

std::vector<ProbeRow> probe_all_reduce(NcclChannel& channel, MPI_Comm comm, const NcclProbeOptions& options) {
  const int64_t most = options.most_bytes / static_cast<int64_t>(sizeof(float));
  const Memory from(most), to(most);
  std::vector<ProbeRow> rows;
  for (int64_t bytes = options.least_bytes; bytes <= options.most_bytes; bytes *= options.factor) {
    ProbeRow row;
    row.count = bytes / static_cast<int64_t>(sizeof(float));
    row.bytes = row.count * static_cast<int64_t>(sizeof(float));
    std::vector<float> given(static_cast<size_t>(row.count));
    for (size_t i = 0; i < given.size(); ++i) given[i] = probe_given(channel.rank(), static_cast<int64_t>(i));
    row.out_of_place = probe_one(channel, comm, given, from.data, to.data, options);
    row.in_place = probe_one(channel, comm, given, from.data, from.data, options);
    rows.push_back(row);
  }
  return rows;
}

std::vector<ProbeRow> probe_world(int device, const NcclProbeOptions& options) {
  NcclChannel channel(MPI_COMM_WORLD, device);
  const std::vector<ProbeRow> rows = probe_all_reduce(channel, MPI_COMM_WORLD, options);
  channel.close();
  return rows;
}

std::vector<std::vector<std::string>> probe_table(const std::vector<ProbeRow>& rows, int ranks) {
  std::vector<std::vector<std::string>> table = {{"size B", "count", "type", "redop", "time us", "algbw GB/s",
                                                  "busbw GB/s", "#wrong", "in place us", "algbw GB/s", "busbw GB/s",
                                                  "#wrong"}};
  for (const ProbeRow& r : rows) {
    std::vector<std::string> line = {std::to_string(r.bytes), std::to_string(r.count), "float", "sum"};
    for (const ProbeTime& t : {r.out_of_place, r.in_place}) {
      line.insert(line.end(), {text("%.2f", 1e6 * t.seconds), text("%.2f", algorithm_bandwidth(r.bytes, t.seconds)),
                               text("%.2f", bus_bandwidth(r.bytes, t.seconds, ranks)), std::to_string(t.wrong)});
    }
    table.push_back(line);
  }
  return table;
}

bool probe_passed(const std::vector<ProbeRow>& rows) {
  return std::all_of(rows.begin(), rows.end(),
                     [](const ProbeRow& r) { return r.out_of_place.wrong == 0 && r.in_place.wrong == 0; });
}

std::string probe_verdict(const std::vector<ProbeRow>& rows, int ranks) {
  int64_t wrong = 0;
  double best = 0;
  for (const ProbeRow& r : rows) {
    wrong += r.out_of_place.wrong + r.in_place.wrong;
    best = std::max({best, bus_bandwidth(r.bytes, r.out_of_place.seconds, ranks),
                     bus_bandwidth(r.bytes, r.in_place.seconds, ranks)});
  }
  if (wrong > 0) {
    return "NCCL computes wrong sums on this machine: " + std::to_string(wrong) +
           " elements; do not train on it; try NCCL_P2P_DISABLE=1, and check the ACS and IOMMU settings of the PCI "
           "bridges";
  }
  if (ranks == 1) return "NCCL starts and its sums are right; with one device there is no link to measure";
  return "NCCL's sums are right between " + std::to_string(ranks) + " devices; at best " + text("%.1f", best) +
         " GB/s of bus bandwidth";
}

std::vector<std::vector<std::string>> device_table() {
  int devices = 0;
  PAL_CUDA_CHECK(cudaGetDeviceCount(&devices));
  std::vector<std::vector<std::string>> table = {
      {"device", "name", "PCI", "memory GiB", "compute", "reaches directly"}};
  for (int d = 0; d < devices; ++d) {
    cudaDeviceProp properties{};
    PAL_CUDA_CHECK(cudaGetDeviceProperties(&properties, d));
    char bus[32] = {};
    PAL_CUDA_CHECK(cudaDeviceGetPCIBusId(bus, sizeof(bus), d));
    std::string reached;
    for (int other = 0; other < devices; ++other) {
      int can = 0;
      if (other == d) continue;
      PAL_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, d, other));
      if (can && !reached.empty()) reached += " ";
      if (can) reached += std::to_string(other);
    }
    if (reached.empty()) reached = devices == 1 ? "no other device here" : "none: traffic goes through host memory";
    table.push_back({std::to_string(d), properties.name, bus,
                     text("%.1f", static_cast<double>(properties.totalGlobalMem) / (1 << 30)),
                     std::to_string(properties.major) + "." + std::to_string(properties.minor), reached});
  }
  return table;
}

}  // namespace pal::dist
