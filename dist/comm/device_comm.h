// device_comm: a Comm that may also carry GPU tensors, by NCCL and in stream order.
//
// Thread: the calling thread enqueues; nothing here waits for another rank except close().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/comm/comm.h"
#include "dist/comm/flight_recorder.h"

namespace pal::dist {

// How long collectives took on the device, and how long the stream that joined them then waited for the last one.
struct Overlap {
  double seconds = 0, waited = 0;
};

class DeviceComm : public comm::Comm {
 public:
  // Whether GPU tensors are carried: the calling thread enqueues the collective after the work of its current stream,
  // which then waits for the result. Otherwise only CPU tensors are carried.
  virtual bool enqueues() const = 0;
  // An all_reduce whose result the calling thread's stream waits for only at join(); until then it computes. bfloat16
  // numbers are added in fp32 and rounded once.
  virtual void begin_all_reduce(at::Tensor t) = 0;
  virtual void join() = 0;
  // Of the all_reduces of begin_all_reduce() since the last call, by events on the device. After join(); the host waits
  // for them.
  virtual Overlap overlap() = 0;
};

// The NCCL channels of a world: one for all of its ranks, one for the ranks of this host.
class DeviceChannels {
 public:
  virtual ~DeviceChannels() = default;
  virtual void close() = 0;  // Collective.
  virtual void abort() = 0;  // Not collective: ends this rank's part at once.
  enum class Reach { world, node };
  // A communicator that carries GPU tensors by NCCL, and CPU tensors by `host`.
  virtual std::unique_ptr<DeviceComm> carry(std::unique_ptr<comm::Comm> host, Reach reach) = 0;
};

// Collective over all ranks of MPI_COMM_WORLD, which wait start_seconds for each other. Records launches in `log`,
// which must outlive the result. A guard thread calls on_failure when a launch is overdue or NCCL reports an error.
// Throws in a build without CUDA.
std::unique_ptr<DeviceChannels> make_device_channels(int device, double start_seconds, FlightRecorder& log,
                                                     std::function<void(const std::string&)> on_failure);

}  // namespace pal::dist
