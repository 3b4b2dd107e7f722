#include "dist/comm/nccl_channel.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "dist/comm/device.h"
#include "dist/comm/mpi_check.h"
#include "kernels/base/clock.h"
#include "kernels/base/cuda_check.h"

static_assert(NCCL_VERSION_CODE >= 22700, "NCCL 2.27 or later");

namespace pal::dist {
namespace {

constexpr size_t kInFlight = 256;  // with more launches than this, the finished ones are removed

std::string host_of_this_process() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// Wrong arguments are a bug of this program. Any other error may be gone after a restart.
Exit code_of(ncclResult_t result) {
  return result == ncclInvalidArgument || result == ncclInvalidUsage ? Exit::bug : Exit::lost;
}

}  // namespace

NcclChannel::NcclChannel(MPI_Comm parent, int device, NcclOptions options)
    : options_(std::move(options)), device_(device) {
  PAL_MPI_CHECK(MPI_Comm_dup(parent, &boot_));
  PAL_MPI_CHECK(MPI_Comm_set_errhandler(boot_, MPI_ERRORS_RETURN));
  PAL_MPI_CHECK(MPI_Comm_rank(boot_, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(boot_, &size_));
  // An error of one rank is thrown on every rank.
  decide_device("cuda", gather_found(found_devices(host_of_this_process(), device), boot_), rank_);
  status_channel_.emplace(boot_);
  open_stream();
  // Channels of a process run at once, on streams of their own: NCCL then keeps the order in which they were launched,
  // which is the same on every rank. It reads the variable once, when it starts.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  struct {
    ncclUniqueId id;
    ncclResult_t result = ncclSuccess;
  } start;
  if (rank_ == 0) start.result = ncclGetUniqueId(&start.id);
  PAL_MPI_CHECK(MPI_Bcast(&start, sizeof(start), MPI_BYTE, 0, boot_));
  if (start.result != ncclSuccess)
    throw Error(Exit::lost, std::string("NCCL cannot start on rank 0: ") + ncclGetErrorString(start.result));
  std::snprintf(status_.what, sizeof(status_.what), "start");
  begin([&] {
    ncclConfig_t config = non_blocking();
    call(ncclCommInitRankConfig(&comm_, size_, start.id, rank_, &config));
  });
}

NcclChannel::NcclChannel(MPI_Comm boot, ncclComm_t comm, const NcclChannel& parent)
    : options_(parent.options_), device_(parent.device_), boot_(boot), comm_(comm) {
  PAL_MPI_CHECK(MPI_Comm_rank(boot_, &rank_));
  PAL_MPI_CHECK(MPI_Comm_size(boot_, &size_));
  status_channel_.emplace(boot_);
  open_stream();
  begin([] {});
}

void NcclChannel::begin(const std::function<void()>& calls) {
  guard_ = std::thread([this] { guard(); });
  try {
    const std::lock_guard lock(mutex_);
    calls();
    settle(options_.start_seconds);
  } catch (...) {
    stop_guard();
    throw;
  }
}

void NcclChannel::open_stream() {
  PAL_CUDA_CHECK(cudaSetDevice(device_));
  int least = 0, greatest = 0;
  PAL_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  // The highest priority: other ranks wait for these kernels.
  PAL_CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
  PAL_CUDA_CHECK(cudaEventCreateWithFlags(&handover_, cudaEventDisableTiming));
}

NcclChannel::~NcclChannel() {
  if (comm_ != nullptr) abort();
  stop_guard();
  for (const InFlight& f : in_flight_) cudaEventDestroy(f.done);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  if (handover_ != nullptr) cudaEventDestroy(handover_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void NcclChannel::close() {
  wait();
  {
    const std::lock_guard lock(mutex_);
    call(ncclCommFinalize(comm_));
    settle(options_.seconds);
    call(ncclCommDestroy(comm_));
    comm_ = nullptr;
    failure_ = "this channel is closed";
  }
  stop_guard();
  PAL_MPI_CHECK(MPI_Barrier(boot_));  // no rank sends a status query after this
  PAL_MPI_CHECK(MPI_Comm_free(&boot_));
}

void NcclChannel::abort() {
  const std::lock_guard lock(mutex_);
  abort_locked();
}

void NcclChannel::abort_locked() {
  if (comm_ == nullptr) return;
  ncclCommAbort(comm_);
  comm_ = nullptr;
  if (failure_.empty()) failure_ = "this channel was aborted";
}

std::unique_ptr<NcclChannel> NcclChannel::split_node() {
  const std::lock_guard lock(mutex_);
  check_usable();
  MPI_Comm node = MPI_COMM_NULL;
  PAL_MPI_CHECK(MPI_Comm_split_type(boot_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node));
  PAL_MPI_CHECK(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN));
  int first = rank_;
  PAL_MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, node));
  ncclComm_t child = nullptr;
  ncclConfig_t config = non_blocking();
  call(ncclCommSplit(comm_, first, rank_, &child, &config));
  settle(options_.start_seconds);
  // NCCL may write the child's handle a moment after the parent has finished.
  for (const Clock::time_point begin = Clock::now(); *const_cast<ncclComm_t volatile*>(&child) == nullptr;) {
    if (seconds_since(begin) > options_.start_seconds)
      lose("NCCL did not split the communicator; set NCCL_DEBUG=INFO for details");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return std::unique_ptr<NcclChannel>(new NcclChannel(node, child, *this));
}

void NcclChannel::after(cudaStream_t user) {
  const std::lock_guard lock(mutex_);
  check_usable();
  PAL_CUDA_CHECK(cudaEventRecord(handover_, user));
  PAL_CUDA_CHECK(cudaStreamWaitEvent(stream_, handover_, 0));
}

void NcclChannel::before(cudaStream_t user) {
  const std::lock_guard lock(mutex_);
  check_usable();
  PAL_CUDA_CHECK(cudaEventRecord(handover_, stream_));
  PAL_CUDA_CHECK(cudaStreamWaitEvent(user, handover_, 0));
}

void NcclChannel::check_usable() const {
  if (comm_ == nullptr) throw Error(failure_code_, failure_);
}

void NcclChannel::call(ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string details = comm_ == nullptr ? "" : ncclGetLastError(comm_);
  const std::string sentence = std::string("NCCL: ") + ncclGetErrorString(result) +
                               (details.empty() ? "" : ": " + details) + ", in launch " + std::to_string(number_) +
                               " (" + status().what + "); set NCCL_DEBUG=INFO for details";
  failure_ = sentence;
  failure_code_ = code_of(result);
  if (!launching_) abort_locked();
  throw Error(failure_code_, sentence);
}

void NcclChannel::settle(double seconds) {
  const Clock::time_point begin = Clock::now();
  for (int turn = 0;; ++turn) {
    ncclResult_t state = ncclSuccess;
    call(ncclCommGetAsyncError(comm_, &state));
    if (state != ncclInProgress) return call(state);
    if (seconds_since(begin) > seconds) lose(describe_overdue(begin, [] {}));
    if (turn > 100) std::this_thread::sleep_for(std::chrono::microseconds(50));  // it usually takes a few microseconds
  }
}

void NcclChannel::lose(const std::string& sentence) {
  failure_ = sentence;
  abort_locked();
  throw Error(Exit::lost, sentence);
}

void NcclChannel::launch(const std::string& what, const std::function<void()>& calls) {
  const std::lock_guard lock(mutex_);
  check_usable();
  if (grouping_) {
    group_what_ += (group_what_.empty() ? "" : ", ") + what;
    return calls();
  }
  {
    const std::lock_guard status_lock(status_mutex_);
    status_.number = ++number_;
    std::snprintf(status_.what, sizeof(status_.what), "%s", what.c_str());
  }
  const Clock::time_point begin = Clock::now();
  call(ncclGroupStart());
  launching_ = true;
  try {
    calls();
  } catch (...) {  // the launch is incomplete here, and other ranks wait for it
    ncclGroupEnd();
    launching_ = false;
    abort_locked();
    throw;
  }
  launching_ = false;
  call(ncclGroupEnd());
  settle(options_.seconds);
  const cudaEvent_t done = take_event();
  PAL_CUDA_CHECK(cudaEventRecord(done, stream_));
  in_flight_.push_back({status(), begin, done});
  if (in_flight_.size() > kInFlight) retire();
}

void NcclChannel::grouped(const std::function<void()>& calls) {
  const std::lock_guard lock(mutex_);
  if (grouping_) return calls();
  launch("group", [&] {
    grouping_ = true;
    group_what_.clear();
    try {
      calls();
    } catch (...) {
      grouping_ = false;
      throw;
    }
    grouping_ = false;
    const std::lock_guard status_lock(status_mutex_);
    std::snprintf(status_.what, sizeof(status_.what), "group of %s", group_what_.c_str());
  });
}

cudaEvent_t NcclChannel::take_event() {
  cudaEvent_t event = nullptr;
  if (events_.empty()) {
    PAL_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
  }
  event = events_.back();
  events_.pop_back();
  return event;
}

void NcclChannel::retire() {
  while (!in_flight_.empty()) {
    const cudaError_t state = cudaEventQuery(in_flight_.front().done);
    if (state == cudaErrorNotReady) return;
    PAL_CUDA_CHECK(state);
    events_.push_back(in_flight_.front().done);
    in_flight_.pop_front();
  }
  waiting_since_ = 0;
}

void NcclChannel::wait() {
  for (int turn = 0;; ++turn) {
    {
      const std::lock_guard lock(mutex_);
      check_usable();
      retire();
      if (in_flight_.empty()) return;
    }  // the guard thread aborts after an error or at the deadline; check_usable then throws
    if (turn > 100) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace pal::dist
