// device_comm: a Comm that may also carry tensors of GPUs from GPU to GPU, in the order of streams.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/comm/comm.h"
#include "dist/comm/flight_recorder.h"

namespace pal::dist {

class DeviceComm : public comm::Comm {
 public:
  // Whether tensors of a GPU go as they are: enqueued by the calling thread behind its current stream, which then waits
  // for the result. Otherwise only tensors of the CPU are carried.
  virtual bool enqueues() const = 0;
  // all_reduce that the calling thread's stream waits for at join() only, so that it goes on computing.
  virtual void begin_all_reduce(at::Tensor t) = 0;
  virtual void join() = 0;
};

// The NCCL channels of a world: one for all of its ranks, one for those of a host.
class DeviceChannels {
 public:
  virtual ~DeviceChannels() = default;
  virtual void close() = 0;  // Collective.
  virtual void abort() = 0;  // this rank alone, at once
  enum class Reach { world, node };
  // The same communicator, whose GPU tensors go by NCCL from now on; `host` carries those of the CPU.
  virtual std::unique_ptr<DeviceComm> carry(std::unique_ptr<comm::Comm> host, Reach reach) = 0;
};

// Collective over all ranks of MPI_COMM_WORLD. Launches are written to `log`, which must outlive the result. on_failure is
// called by a thread when a rank does not come or NCCL reports an error. Throws in a build without CUDA.
std::unique_ptr<DeviceChannels> make_device_channels(int device, FlightRecorder& log,
                                                     std::function<void(const std::string&)> on_failure);

}  // namespace pal::dist
