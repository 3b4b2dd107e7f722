// nccl_channel: NCCL on pointers: one communicator, one stream of its own, asynchronous collectives.
//
// Order: after(s) makes later work of the channel wait for the work that stream s has now; before(s) makes later work
//   of s wait for the work that the channel has now. A buffer belongs to the channel from after() to before().
// Async: a call returns when the collective is in the stream. The communicator is non-blocking: every wait of a call
//   has a deadline.
// Collective: the constructor, close(), split_node() and every collective; same order, counts and types on all ranks.
//   Counts of 0 are skipped on all ranks.
// Thread: one thread at a time enqueues. The channel's guard thread (nccl_guard.cpp) polls NCCL for errors and replies
//   to status queries of other ranks. It aborts the communicator when NCCL reports an error or a launch is overdue.
//   Waiting kernels then end, and so does a host thread that waits for them. The guard thread calls `on_failure`, and
//   every later call throws Error (lost).
// Communicators: the NCCL communicator, and an MPI communicator for the start, status queries and close().
// Lifetime: close() is the orderly end on all ranks. The destructor of an open channel aborts this rank's part only.
// No LibTorch. NCCL 2.27 or later.
#pragma once

#include <cuda_runtime_api.h>
#include <mpi.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dist/comm/rank_status.h"
#include "kernels/base/error.h"

namespace pal::dist {

enum class NcclType { float32, float64, bfloat16, int32, int64, uint8 };
enum class NcclOp { sum, max, min };

struct NcclOptions {
  double start_seconds = 120;                          // until all ranks have connected
  double seconds = 600;                                // from a launch to its end
  std::function<void(const std::string&)> on_failure;  // called by the guard thread; may end the process
};

class NcclChannel {
 public:
  using Counts = std::vector<int64_t>;  // elements, by rank

  // On the CUDA device `device` of this process. Compares versions and devices of all ranks first.
  NcclChannel(MPI_Comm parent, int device, NcclOptions options = {});
  ~NcclChannel();
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  void close();                               // waits for the launches, finalizes and destroys the communicator
  void abort();                               // not collective: at once, this rank only
  std::unique_ptr<NcclChannel> split_node();  // the ranks of this host

  int rank() const { return rank_; }
  int size() const { return size_; }
  int device() const { return device_; }
  cudaStream_t stream() const { return stream_; }

  void after(cudaStream_t user);
  void before(cudaStream_t user);

  void all_reduce(const void* from, void* to, int64_t count, NcclType type,
                  NcclOp op = NcclOp::sum);                                                // from == to: in place
  void all_gather(const void* from, void* to, const Counts& counts, NcclType type);        // in rank order
  void gather(const void* from, void* to, const Counts& counts, NcclType type, int root);  // only root has `to`
  void reduce_scatter(const void* from, void* to, const Counts& counts, NcclType type);    // from: Σ counts
  void broadcast(void* data, int64_t count, NcclType type, int root);
  void all_to_all(const void* from, const Counts& send, void* to, const Counts& receive, NcclType type);
  // The collectives called inside become one launch.
  void grouped(const std::function<void()>& calls);

  void wait();  // until every launch is done
  // The begin of the oldest launch that was not done when the guard thread last looked, if that is more than a second
  // ago. For the watchdog's thread: it calls neither CUDA nor NCCL.
  std::optional<std::chrono::steady_clock::time_point> oldest_waiting() const;
  int64_t launches() const { return number_; }

 private:
  struct InFlight {
    LaunchStatus status;
    std::chrono::steady_clock::time_point begin;
    cudaEvent_t done = nullptr;
  };

  NcclChannel(MPI_Comm boot, ncclComm_t comm, const NcclChannel& parent);
  void open_stream();
  void begin(const std::function<void()>& calls);  // `calls` create the communicator
  void launch(const std::string& what, const std::function<void()>& calls);
  void call(ncclResult_t result);  // throws if a function of NCCL failed
  void settle(double seconds);     // waits while NCCL reports ncclInProgress
  void check_usable() const;
  void retire();                                        // removes the launches that are done
  [[noreturn]] void lose(const std::string& sentence);  // aborts and throws
  void abort_locked();
  std::string describe_overdue(std::chrono::steady_clock::time_point since, const std::function<void()>& meanwhile);
  LaunchStatus status() const;
  void guard();
  void guard_once();
  void stop_guard();
  cudaEvent_t take_event();

  const NcclOptions options_;
  const int device_;
  MPI_Comm boot_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::optional<RankStatusChannel> status_channel_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t handover_ = nullptr;
  std::atomic<int64_t> number_{0};
  std::atomic<std::chrono::steady_clock::rep> waiting_since_{0};  // 0: no launch waits
  mutable std::mutex status_mutex_;  // guards status_, which the guard thread reads while a launch holds mutex_
  LaunchStatus status_;

  mutable std::recursive_mutex mutex_;  // guards the members up to events_; held for the length of a launch
  ncclComm_t comm_ = nullptr;           // null: closed or aborted
  std::string failure_;                 // why comm_ is null; every later call throws it
  Exit failure_code_ = Exit::lost;
  bool grouping_ = false, launching_ = false;  // inside grouped(); between ncclGroupStart and ncclGroupEnd
  std::string group_what_;
  std::deque<InFlight> in_flight_;
  std::vector<cudaEvent_t> events_;  // for reuse

  std::mutex stop_mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread guard_;
};

int64_t nccl_type_bytes(NcclType type);

}  // namespace pal::dist
