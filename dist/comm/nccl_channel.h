// nccl_channel: NCCL on pointers: one communicator, one stream of its own, collectives that are enqueued and not waited for.
//
// Order: after(s) makes what the channel gets from now on wait for what stream s holds now; before(s) makes what s gets
//   from now on wait for what the channel holds now. A buffer belongs to the channel from the first to the second.
// Async: a call returns when the collective is in the stream. The communicator is non-blocking: no call waits for ever.
// Collective: the constructor, close(), split_node() and every collective; same order, counts and types on all ranks.
//   Counts of 0 are skipped on all ranks alike.
// Thread: one thread at a time enqueues. A thread of the channel asks NCCL for errors, answers the other ranks' question
//   where this one is, and aborts the communicator when NCCL reports an error or a launch is not done in time: kernels
//   that wait then end, and so does a host that waits for them. The failure is told to `on_failure`, and thrown as Error
//   (lost) by every later call.
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
  double start_seconds = 120;                          // from the constructor's call to all ranks having met
  double seconds = 600;                                // from a launch to its end
  std::function<void(const std::string&)> on_failure;  // called by the channel's thread; may end the process
};

class NcclChannel {
 public:
  using Counts = std::vector<int64_t>;  // elements, by rank

  // On the CUDA device `device` of this process. Compares versions and devices of all ranks first.
  NcclChannel(MPI_Comm parent, int device, NcclOptions options = {});
  ~NcclChannel();  // not collective: aborts what was not closed
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  void close();                               // waits, finalizes, destroys
  void abort();                               // at once, this rank alone
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
  void gather(const void* from, void* to, const Counts& counts, NcclType type, int root);  // `to` of root alone
  void reduce_scatter(const void* from, void* to, const Counts& counts, NcclType type);    // from: Σ counts
  void broadcast(void* data, int64_t count, NcclType type, int root);
  void all_to_all(const void* from, const Counts& send, void* to, const Counts& receive, NcclType type);
  // The collectives called inside become one launch.
  void grouped(const std::function<void()>& calls);

  void wait();  // until all that was enqueued is done
  // How long the oldest launch that is not done has been under way, where that exceeds a second. For a watchdog.
  std::optional<std::chrono::steady_clock::time_point> oldest_waiting();
  int64_t launches() const { return number_; }

 private:
  struct InFlight {
    LaunchStatus place;
    std::chrono::steady_clock::time_point begin;
    cudaEvent_t done = nullptr;
  };

  NcclChannel(MPI_Comm boot, ncclComm_t comm, const NcclChannel& parent);
  void open_stream();
  void begin(const std::function<void()>& calls);  // what makes the communicator
  void launch(const std::string& what, const std::function<void()>& calls);
  void call(ncclResult_t result);  // of a function of NCCL
  void settle(double seconds);     // until the communicator is no longer in progress
  void check_usable() const;
  void retire();                                        // launches that are done
  [[noreturn]] void lose(const std::string& sentence);  // aborts and throws
  void abort_locked();
  std::string absent(std::chrono::steady_clock::time_point since, const std::function<void()>& meanwhile);
  LaunchStatus place() const;
  void guard();
  void guard_once();
  void stop_guard();
  cudaEvent_t take_event();

  const NcclOptions options_;
  const int device_;
  MPI_Comm boot_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::optional<RankStatusChannel> roll_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t handover_ = nullptr;
  std::atomic<int64_t> number_{0};
  mutable std::mutex place_mutex_;  // guards place_: read while a launch waits
  LaunchStatus place_;

  mutable std::recursive_mutex mutex_;  // guards what stands below; held for the length of a launch
  ncclComm_t comm_ = nullptr;           // null: closed or aborted
  std::string failure_;                 // why; every later call throws it
  Exit failure_code_ = Exit::lost;
  bool grouping_ = false, launching_ = false;  // inside grouped(); between NCCL's group calls
  std::string group_what_;
  std::deque<InFlight> in_flight_;
  std::vector<cudaEvent_t> events_;  // to use again

  std::mutex stop_mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread guard_;
};

int64_t nccl_type_bytes(NcclType type);

}  // namespace pal::dist
