// world: MPI from MPI_Init to MPI_Finalize, and the communicators of a run.
//
// Thread: MPI_THREAD_MULTIPLE, checked. No two threads share a communicator:
//   compute    the computing thread: loss, batch norm                             ("now" in flight/*.json)
//   gradients  GradSync's thread: sums of gradient buckets; waits without spinning ("bulk")
//   control    the computing thread: decisions, checkpoints, the run folder       ("control")
//   node       the computing thread: the ranks of this host                       ("node")
//   oracle     the query round's thread; waits without spinning. The watchdog does not watch it, because a round may
//              take long.
// Lifetime: main owns it. The orderly end is close(), after an error it is abort(). The destructor only frees memory: a
//   World that was not closed leaves MPI as it is, so that a rank never waits there for the others.
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
  World();  // Collective. Starts MPI; without mpirun or srun it is a world of one rank that needs no MPI.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Collective. Closes the NCCL channels, frees the communicators and finalizes MPI. Nothing may use the world after
  // it.
  void close();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // among the ranks of this host
  int local_size() const { return local_size_; }
  const std::string& host() const { return host_; }
  // This rank's share of the cores: each core it may use, divided by the number of ranks on this host that may use it.
  double cores() const { return cores_; }
  std::string prefix() const;  // "[rank 1/4 host]"

  comm::Comm& compute() { return *compute_; }
  comm::Comm& gradients() { return *gradients_; }
  comm::Comm& control() { return *control_; }
  comm::Comm& oracle() { return *oracle_; }
  comm::Comm& node() { return *node_; }  // the ranks of this host

  // Collective. The device that `setting`=`asked` (auto, cpu, cuda) means for this rank. Where it is a GPU, NCCL
  // carries its tensors from now on: one NCCL communicator for `compute` and `gradients`, another for `node`. Call it
  // before taking a reference to a communicator: it replaces them. GPU ranks wait start_seconds for each other.
  static constexpr double kStartSeconds = 120;  // the default of train.start_seconds
  DeviceDecision use_device(const std::string& asked, const std::string& setting = "train.device",
                            double start_seconds = kStartSeconds);

  std::vector<const FlightRecorder*> flight_recorders() const {
    return {&compute_log_, &gradients_log_, &control_log_, &device_log_, &node_log_};
  }

  // Ends every rank at once with this exit code (MPI_Abort).
  [[noreturn]] void abort(int exit_code);

 private:
  bool mpi_ = false;  // between MPI_Init and MPI_Finalize
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  double cores_ = 1;
  std::string host_;
  FlightRecorder compute_log_{"now"}, gradients_log_{"bulk"}, control_log_{"control"}, device_log_{"device"},
      node_log_{"node"};
  std::unique_ptr<DeviceChannels> channels_;  // null where ranks compute on CPUs, and in a world of one rank
  std::unique_ptr<comm::Comm> compute_, gradients_, control_, oracle_, node_;
};

// Whether this process was started as a rank by mpirun or srun (from the environment they set).
bool started_as_rank();
// "Open MPI v4.1.4"; needs no world.
std::string mpi_library();

}  // namespace pal::dist
