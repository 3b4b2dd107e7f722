// communicator: a communicator of NCCL over MPI: its launches, its state and its errors.
//
// A launch is a list of operations (of a group, or one). It becomes a host function of its CUDA stream: when the stream
// reaches it, the ranks first exchange and compare what they launched, then they send the data. A difference between
// ranks, a buffer that changes meanwhile and every misuse is an error with a sentence on stderr; the launch then hangs,
// as with NCCL, until the communicator is aborted.
// A launch of a non-blocking communicator reaches its stream only when the program has asked for the state.
// Thread: the caller's, threads of the CUDA runtime, and the thread that asks for the state or aborts.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/simgpu/nccl/operation.h"
#include "tests/simgpu/nccl/wire.h"

namespace simnccl {

enum class Mode { blocking, non_blocking };
enum class Life { live, finalized, destroyed, aborted };

class Communicator {
 public:
  Communicator(Wire wire, Mode mode) : wire_(std::move(wire)), mode_(mode) {}

  int rank() const { return wire_.me(); }
  int size() const { return wire_.size(); }
  Mode mode() const { return mode_; }
  Life life() const { return life_; }
  bool in_flight() const { return life_ == Life::live && done_ != launched_; }

  // Each returns at once with ncclInProgress when non-blocking; state() returns the outcome.
  ncclResult_t meet(const ncclUniqueId& id);
  ncclResult_t launch(const std::vector<Operation>& operations, cudaStream_t stream);
  ncclResult_t split(int color, int key, Mode mode, ncclComm_t* out);
  ncclResult_t finalize();

  ncclResult_t state();  // what ncclCommGetAsyncError answers; takes deferred work further
  void end(Life life);   // destroyed or aborted: launches that wait are let go
  ncclResult_t fail(ncclResult_t result, const std::string& sentence);
  std::string last_error() const;

 private:
  struct Launch {
    Communicator* owner = nullptr;
    uint64_t number = 0;  // of the communicator's launches, from 0
    std::vector<Operation> operations;
    cudaStream_t stream = nullptr;
  };
  struct Deferred {
    std::unique_ptr<Launch> launch;
    int polls = 0;
  };

  ncclResult_t in_background(std::thread work);
  ncclResult_t begin(std::unique_ptr<Launch> launch);
  static void run(void* launch);
  void exchange(Launch& launch);
  void compare(const Launch& launch);
  void move(Launch& launch);
  void settle_split(int color, int key, Mode mode, ncclComm_t* out);

  Wire wire_;
  const Mode mode_;
  std::atomic<Life> life_{Life::live};
  std::atomic<bool> aborted_{false};
  std::atomic<int> busy_{0};  // background work that is not done: then the state is ncclInProgress
  std::atomic<uint64_t> launched_{0}, done_{0};
  mutable std::mutex mutex_;  // guards what stands below
  ncclResult_t result_ = ncclSuccess;
  std::string sentence_;
  std::vector<Deferred> deferred_;
};

// The object behind a handle; null, with a sentence, for a pointer that is no handle or a handle that was freed.
Communicator* find(ncclComm_t handle, const char* called_by);
ncclComm_t add(std::unique_ptr<Communicator> communicator);
void complain(const std::string& sentence);

}  // namespace simnccl
