// world: MPI from its start to its end, and the communicators of the design.
//
// Thread: MPI_THREAD_MULTIPLE, checked. Four communicators, so that no two threads share one: `now` (loss, batch norm;
//   the thread that computes), `bulk` (gradients; a thread of its own, whose
//   waits sleep), `control` (decisions, run folder), `rounds` (the choice of questions, a thread of its own, whose waits sleep;
//   nobody is blamed for being late there).
// Lifetime: main owns it. The destructor finalizes MPI only when no exception is on its way; after an error call abort().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/comm/comm.h"
#include "dist/comm/device.h"
#include "dist/comm/device_comm.h"
#include "dist/comm/flight_recorder.h"

namespace pal::dist {

class World {
 public:
  World();   // Collective. Starts MPI; without mpirun or srun it is a world of one that needs no MPI.
  ~World();  // Finalizes, unless an error is unwinding.
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // among the ranks of this host
  int local_size() const { return local_size_; }
  const std::string& host() const { return host_; }
  // Cores that are this rank's: those it may use, each divided among the ranks of this host that may use it too.
  double cores() const { return cores_; }
  std::string prefix() const;  // "[rank 1/4 host]"

  comm::Comm& compute() { return *compute_; }
  comm::Comm& gradients() { return *gradients_; }
  comm::Comm& control() { return *control_; }
  comm::Comm& oracle() { return *oracle_; }
  comm::Comm& node() { return *node_; }  // the ranks of this host

  // Collective. The device that train.device=`asked` (auto, cpu, cuda) means for this rank; where it is a GPU, tensors of
  // that GPU go by NCCL from now on: `now` and `bulk` through one NCCL communicator, `node` through another. To be called
  // before anybody holds a communicator.
  DeviceDecision use_device(const std::string& asked);

  std::vector<const FlightRecorder*> flight_recorders() const {
    return {&compute_log_, &gradients_log_, &control_log_, &device_log_, &node_log_};
  }

  // Brings every rank down, at once, with this exit code. Never returns.
  [[noreturn]] void abort(int exit_code);

 private:
  bool mpi_ = false;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  double cores_ = 1;
  std::string host_;
  FlightRecorder compute_log_{"now"}, gradients_log_{"bulk"}, control_log_{"control"}, device_log_{"device"}, node_log_{"node"};
  std::unique_ptr<DeviceChannels> channels_;  // null where ranks compute on CPUs, or alone
  std::unique_ptr<comm::Comm> compute_, gradients_, control_, oracle_, node_;
};

// Whether this process was started as a rank by mpirun or srun (from the environment they set).
bool started_as_rank();
// "Open MPI v4.1.4"; needs no world.
std::string mpi_library();

}  // namespace pal::dist
