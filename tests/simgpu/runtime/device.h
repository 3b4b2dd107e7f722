// device: the one device that the stand-in simulates: memory, the program's kernels and variables, streams, errors.
//
// SIMGPU_DEVICES=n lets the program see n devices, of which it may use one: the first that a thread works on. A call
// that works on another one would create a second context, with memory on a device of another rank: it is refused.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/simgpu/launch.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/module.h"
#include "tests/simgpu/runtime/fair_mutex.h"
#include "tests/simgpu/runtime/fatbin.h"
#include "tests/simgpu/runtime/properties.h"
#include "tests/simgpu/runtime/timeline.h"
#include "tests/simgpu/settings.h"

namespace simgpu {

// What one .cu file registered. Its PTX is read when something of it is first used.
struct Binary {
  const void* wrapper = nullptr;
  std::unique_ptr<Module> module;
};

// A kernel as the host names it; cudaKernel_t points to one.
struct KernelHandle {
  Binary* binary = nullptr;
  std::string name;                // mangled
  const Kernel* kernel = nullptr;  // null until first used
  size_t max_dynamic_shared = 0;   // set with the kernel; cudaFuncSetAttribute raises it
};

struct VariableHandle {
  Binary* binary = nullptr;
  std::string name;
};

struct Event {
  WorkRef recorded;
  std::shared_ptr<int64_t> nanoseconds;  // of the last recording, once it was passed
};

class Device {
 public:
  // CUDA's interface is a set of C functions without a handle, which are called before main and after it. So there is
  // one device, which is never destroyed.
  static Device& get();

  Settings settings;
  Memory memory{HostAccess::refused};
  Timeline timeline;
  std::set<Event*> events;
  FairMutex mutex;

  // ---- what the program registered; throws Fault(bad_ptx) when its PTX does not pass ----
  Binary* add_binary(const void* wrapper);
  void add_kernel(Binary* binary, const void* host, const char* name);
  void add_variable(Binary* binary, const void* host, const char* name);
  KernelHandle* kernel(const void* host);  // null: not registered
  const Variable* variable(const void* host);
  const Kernel& resolve(KernelHandle& handle);
  int target();  // compute capability ×10: that of the program's newest PTX

  // ---- streams as the interface names them; null: no such stream ----
  Stream* stream(cudaStream_t handle);

  // ---- errors ----
  // Kernel faults and bad copies found on the way are sticky: every later call returns them, as on a real device.
  cudaError_t sticky() const { return sticky_; }
  void fail(cudaError_t error);

  // The PCI address of a device.
  std::string bus(int ordinal) const;
  // This thread works on its current device: cudaErrorInvalidDevice where the process has a context on another one,
  // cudaErrorDevicesUnavailable where the device is in exclusive mode and another process has it.
  cudaError_t enter_context();
  // Also of a device that was refused: a real driver would have made one there.
  bool has_context(int ordinal) const { return context_ == ordinal || refused_.count(ordinal) > 0; }

  // A launch is due: may lose the device (SIMGPU_BREAK).
  void before_launch();
  void count(const Kernel& kernel, const LaunchStats& stats);

 private:
  Device();
  Module& module(Binary& binary);
  bool take_exclusively(int ordinal);

  std::vector<std::unique_ptr<Binary>> binaries_;
  std::map<const void*, KernelHandle> kernels_;
  std::map<const void*, VariableHandle> variables_;
  cudaError_t sticky_ = cudaSuccess;
  int context_ = -1;  // the device that the process works on; -1: none so far
  std::set<int> refused_;
  uint64_t launches_ = 0;
};

cudaError_t error_of(FaultKind kind);
std::string readable(const std::string& mangled);
void complain(const std::string& text);  // to stderr, as a paragraph of the stand-in
void complain(const Fault& fault);

// This thread's last error, as cudaGetLastError gives it, and its current device.
cudaError_t& last_error();
int& current_device();

enum class Needs { context, nothing };

// Every function of the interface goes through here: one at a time, nothing after a sticky error, errors remembered.
// What needs no context answers after a sticky error, too.
template <class F>
cudaError_t call(const F& f, Needs needs = Needs::context) {
  Device& device = Device::get();
  const std::lock_guard<FairMutex> lock(device.mutex);
  if (device.settings.driver < kLeastDriver) return last_error() = cudaErrorInsufficientDriver;
  cudaError_t error = needs == Needs::context ? device.sticky() : cudaSuccess;
  if (error == cudaSuccess && needs == Needs::context) error = device.enter_context();
  if (error == cudaSuccess) {
    try {
      error = f(device);
    } catch (const Fault& fault) {  // refused before it ran: not sticky
      complain(fault);
      error = error_of(fault.kind());
    } catch (const std::bad_alloc&) {
      error = cudaErrorMemoryAllocation;
    }
    if (needs == Needs::context && device.sticky() != cudaSuccess) error = device.sticky();
  }
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error() = error;
  return error;
}

}  // namespace simgpu
