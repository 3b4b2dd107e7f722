// nccl_planted: a mistake in the use of NCCL, or its clean twin: nccl_planted CASE clean|bug, as two or more ranks.
//
// Exit 0: right numbers; 3: NCCL refused, with its message on stdout; 4: wrong numbers; else the exit code of the
// error. The first cases call NCCL directly, to test the stand-in; the cases at the end use NcclChannel.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "kernels/base/error.h"
#include "tests/dist/comm/nccl_tools.h"

namespace pal::dist {
namespace {

enum class Version { clean, bug };

int g_rank = 0, g_size = 1;
bool odd(Version version) { return version == Version::bug && g_rank == 1; }  // rank 1 makes the mistake

[[noreturn]] void end(int code, const std::string& words) {
  std::printf("%s\n", words.c_str());
  std::fflush(stdout);
  std::fflush(stderr);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the other ranks print their errors
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

// A minimal non-blocking communicator.
struct Raw {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  Raw() {
    ncclUniqueId id;
    if (g_rank == 0) ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check(ncclCommInitRankConfig(&comm, g_size, id, g_rank, &config));
    settle();
    PAL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void check(ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress) end(3, std::string("NCCL: ") + ncclGetErrorString(result));
  }
  void settle() {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) check(ncclCommGetAsyncError(comm, &state));
    check(state);
  }
  void finish() {  // as a program must: a stream that hangs is left when NCCL reports an error
    while (cudaStreamQuery(stream) == cudaErrorNotReady) settle();
    settle();
  }
  void sum(float* data, size_t n, ncclDataType_t type = ncclFloat32, ncclRedOp_t op = ncclSum) {
    check(ncclAllReduce(data, data, n, type, op, comm, stream));
    settle();
  }
};

constexpr size_t kN = 64;

void expect_sum(const std::vector<float>& got) {
  for (size_t i = 0; i < got.size(); ++i) {
    float expected = 0;
    for (int r = 0; r < g_size; ++r) expected += static_cast<float>(given(r, static_cast<int64_t>(i)));
    if (got[i] != expected) end(4, "wrong numbers");
  }
}

// x holds this rank's numbers, and the device has seen them.
struct Setup {
  Raw raw;
  UserStream user;
  DeviceBuffer<float> x{kN}, y{kN};
  Setup() {
    for (DeviceBuffer<float>* b : {&x, &y}) {
      b->give(g_rank, user);
      PAL_CUDA_CHECK(cudaStreamSynchronize(user));
    }
  }
};

void other_count(Version v) {
  Setup s;
  s.raw.sum(s.x.data(), odd(v) ? kN - 1 : kN);
  s.raw.finish();
  expect_sum(s.x.get(s.user));
}
void other_type(Version v) {
  Setup s;
  s.raw.sum(s.x.data(), kN, odd(v) ? ncclInt32 : ncclFloat32);
  s.raw.finish();
  expect_sum(s.x.get(s.user));
}
void other_operation(Version v) {
  Setup s;
  s.raw.sum(s.x.data(), kN, ncclFloat32, odd(v) ? ncclMax : ncclSum);
  s.raw.finish();
  expect_sum(s.x.get(s.user));
}
void other_order(Version v) {
  Setup s;
  const auto share = [&] {
    s.raw.check(ncclBroadcast(s.y.data(), s.y.data(), kN, ncclFloat32, 0, s.raw.comm, s.raw.stream));
    s.raw.settle();
  };
  if (odd(v)) share();
  s.raw.sum(s.x.data(), kN);
  if (!odd(v)) share();
  s.raw.finish();
  expect_sum(s.x.get(s.user));
}
void other_part(Version v) {  // of a send and its receive
  Setup s;
  s.raw.check(ncclGroupStart());
  s.raw.check(ncclSend(s.x.data(), odd(v) ? 5 : 6, ncclFloat32, (g_rank + 1) % g_size, s.raw.comm, s.raw.stream));
  s.raw.check(ncclRecv(s.y.data(), 6, ncclFloat32, (g_rank + g_size - 1) % g_size, s.raw.comm, s.raw.stream));
  s.raw.check(ncclGroupEnd());
  s.raw.settle();
  s.raw.finish();
}
// The sum starts without waiting for the stream that makes its input: with late streams it reads old values.
void input_before_event(Version v) {
  Setup s;
  PAL_CUDA_CHECK(cudaMemsetAsync(s.x.data(), 0, kN * sizeof(float), s.user));
  PAL_CUDA_CHECK(cudaStreamSynchronize(s.user));
  cudaEvent_t made = nullptr;
  PAL_CUDA_CHECK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  s.x.give(g_rank, s.user);
  PAL_CUDA_CHECK(cudaEventRecord(made, s.user));
  if (v == Version::clean) PAL_CUDA_CHECK(cudaStreamWaitEvent(s.raw.stream, made, 0));
  s.raw.sum(s.x.data(), kN);
  s.raw.finish();
  expect_sum(s.x.get(s.raw.stream));
}
void output_before_event(Version v) {
  Setup s;
  cudaEvent_t done = nullptr;
  PAL_CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  s.raw.sum(s.x.data(), kN);
  PAL_CUDA_CHECK(cudaEventRecord(done, s.raw.stream));
  if (v == Version::clean) PAL_CUDA_CHECK(cudaStreamWaitEvent(s.user, done, 0));
  const std::vector<float> got = s.x.get(s.user);
  s.raw.finish();
  expect_sum(got);
}
// The sum has begun when the other stream writes.
void touched_under_way(Version v) {
  Setup s;
  s.raw.sum(s.x.data(), kN);
  if (v == Version::clean) s.raw.finish();
  cudaStreamQuery(s.raw.stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  PAL_CUDA_CHECK(cudaMemsetAsync(v == Version::clean ? s.y.data() : s.x.data(), 0, kN * sizeof(float), s.user));
  PAL_CUDA_CHECK(cudaStreamSynchronize(s.user));
  s.raw.finish();
  expect_sum(s.x.get(s.user));
}
void freed_under_way(Version v) {
  Setup s;
  float* gone = nullptr;
  PAL_CUDA_CHECK(cudaMallocAsync(&gone, kN * sizeof(float), s.user));
  PAL_CUDA_CHECK(cudaMemsetAsync(gone, 0, kN * sizeof(float), s.user));
  PAL_CUDA_CHECK(cudaStreamSynchronize(s.user));
  s.raw.sum(gone, kN);
  cudaStreamQuery(s.raw.stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  if (v == Version::clean) s.raw.finish();
  PAL_CUDA_CHECK(cudaFreeAsync(gone, s.user));
  PAL_CUDA_CHECK(cudaStreamSynchronize(s.user));
  s.raw.finish();
}
void state_not_asked(Version v) {
  Setup s;
  s.raw.check(ncclAllReduce(s.x.data(), s.x.data(), kN, ncclFloat32, ncclSum, s.raw.comm, s.raw.stream));
  if (v == Version::clean) s.raw.settle();
  s.raw.check(ncclAllReduce(s.y.data(), s.y.data(), kN, ncclFloat32, ncclSum, s.raw.comm, s.raw.stream));
  s.raw.settle();
  s.raw.finish();
  expect_sum(s.y.get(s.user));
}
void after_abort(Version v) {
  Setup s;
  if (v == Version::bug) s.raw.check(ncclCommAbort(s.raw.comm));
  s.raw.sum(s.x.data(), kN);
  s.raw.finish();
}
void host_buffer(Version v) {
  Setup s;
  std::vector<float> host(kN);
  s.raw.sum(v == Version::bug ? host.data() : s.x.data(), kN);
  s.raw.finish();
}
void short_buffer(Version v) {
  Setup s;
  s.raw.sum(s.x.data(), v == Version::bug ? kN + 1 : kN);
  s.raw.finish();
}

// ---- through NcclChannel --------------------------------------------------------------------------------------------
NcclOptions hasty() {
  NcclOptions options;
  options.seconds = 2;
  return options;
}

void channel_sum(NcclChannel& channel, DeviceBuffer<float>& x, UserStream& user) {
  x.give(g_rank, user);
  channel.after(user);
  channel.all_reduce(x.data(), x.data(), kN, NcclType::float32);
  channel.before(user);
  channel.wait();
  expect_sum(x.get(user));
}

void missing_rank(Version v) {
  NcclChannel channel(MPI_COMM_WORLD, 0, hasty());
  UserStream user;
  DeviceBuffer<float> x(kN);
  channel_sum(channel, x, user);
  if (odd(v)) std::this_thread::sleep_for(std::chrono::seconds(60));
  channel_sum(channel, x, user);
  channel.close();
}
void killed_rank(Version v) {  // in the middle of a launch that the others have begun
  NcclChannel channel(MPI_COMM_WORLD, 0, hasty());
  UserStream user;
  DeviceBuffer<float> x(kN);
  channel_sum(channel, x, user);
  x.give(g_rank, user);
  channel.after(user);
  channel.all_reduce(x.data(), x.data(), kN, NcclType::float32);
  if (odd(v)) kill(getpid(), SIGKILL);
  channel.before(user);
  channel.wait();
  expect_sum(x.get(user));
  channel.close();
}
void other_count_in_channel(Version v) {
  NcclChannel channel(MPI_COMM_WORLD, 0, hasty());
  UserStream user;
  DeviceBuffer<float> x(kN);
  x.give(g_rank, user);
  channel.after(user);
  channel.all_reduce(x.data(), x.data(), odd(v) ? kN - 1 : kN, NcclType::float32);
  channel.wait();
  channel.close();
}
void start(Version) {  // the environment variables make the fault
  NcclChannel channel(MPI_COMM_WORLD, 0, hasty());
  channel.close();
}

using Case = void (*)(Version);
const std::map<std::string, Case> kCases = {
    {"other_count", other_count},
    {"other_type", other_type},
    {"other_operation", other_operation},
    {"other_order", other_order},
    {"other_part", other_part},
    {"input_before_event", input_before_event},
    {"output_before_event", output_before_event},
    {"touched_under_way", touched_under_way},
    {"freed_under_way", freed_under_way},
    {"state_not_asked", state_not_asked},
    {"after_abort", after_abort},
    {"host_buffer", host_buffer},
    {"short_buffer", short_buffer},
    {"missing_rank", missing_rank},
    {"killed_rank", killed_rank},
    {"other_count_in_channel", other_count_in_channel},
    {"start", start},
};

}  // namespace
}  // namespace pal::dist

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &pal::dist::g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &pal::dist::g_size);
  if (argc != 3 || pal::dist::kCases.count(argv[1]) == 0) return 2;
  try {
    pal::dist::kCases.at(argv[1])(std::strcmp(argv[2], "bug") == 0 ? pal::dist::Version::bug
                                                                   : pal::dist::Version::clean);
  } catch (const pal::Error& e) {
    if (pal::dist::g_rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));  // as main.cpp: said once
    pal::dist::end(static_cast<int>(e.code()), e.what());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
