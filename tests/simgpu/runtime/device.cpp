#include "tests/simgpu/runtime/device.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/simgpu/runtime/stand_in.h"

namespace simgpu {
namespace {

Settings read_settings() {
  try {
    return Settings::from_environment();
  } catch (const std::exception& e) {
    complain(e.what());
    std::exit(2);
  }
}

// Names what happened when host code touches device memory; the process then ends as it would have.
void on_segmentation_fault(int signal, siginfo_t* info, void*) {
  if (Device::get().memory.arena()->holds(info->si_addr)) {
    char text[160];
    const int length = std::snprintf(
        text, sizeof(text), "simgpu: host code touches device memory at %p: copy it with cudaMemcpy\n", info->si_addr);
    if (write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) _exit(2);
  }
  ::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

Device::Device()
    : settings(read_settings()), timeline(settings.streams, settings.seed, [this] {
        mutex.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        mutex.lock();
      }) {}

Device& Device::get() {
  static Device* const device = [] {
    auto* made = new Device;
    struct sigaction action {};
    action.sa_sigaction = on_segmentation_fault;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND;
    sigaction(SIGSEGV, &action, nullptr);
    return made;
  }();
  return *device;
}

std::string Device::bus(int ordinal) const {
  return settings.devices <= 1 ? settings.bus : "0000:0" + std::to_string(1 + ordinal) + ":00.0";
}

cudaError_t Device::enter_context() {
  if (settings.devices == 0) return cudaErrorNoDevice;
  const int mine = current_device();
  if (context_ < 0 && !take_exclusively(mine)) return cudaErrorDevicesUnavailable;
  if (context_ < 0) context_ = mine;
  if (context_ == mine) return cudaSuccess;
  refused_.insert(mine);
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  complain("the thread \"" + std::string(name) + "\" works on device " + std::to_string(mine) +
           ", but this process computes on device " + std::to_string(context_) + ": call cudaSetDevice first");
  return cudaErrorInvalidDevice;
}

// The lock is held until the process ends, as a context is.
bool Device::take_exclusively(int ordinal) {
  if (settings.exclusive.empty()) return true;
  const std::string path = settings.exclusive + "/" + bus(ordinal);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  return file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
}

void Device::before_launch() {
  if (++launches_ != settings.break_at) return;
  complain("the device is lost at launch " + std::to_string(launches_) + " (SIMGPU_BREAK)");
  fail(cudaErrorECCUncorrectable);
}

Binary* Device::add_binary(const void* wrapper) {
  binaries_.push_back(std::make_unique<Binary>());
  binaries_.back()->wrapper = wrapper;
  return binaries_.back().get();
}

void Device::add_kernel(Binary* binary, const void* host, const char* name) {
  kernels_[host] = {binary, name, nullptr, 0};
}

void Device::add_variable(Binary* binary, const void* host, const char* name) { variables_[host] = {binary, name}; }

KernelHandle* Device::kernel(const void* host) {
  const auto found = kernels_.find(host);
  return found == kernels_.end() ? nullptr : &found->second;
}

Module& Device::module(Binary& binary) {
  if (binary.module == nullptr)
    binary.module = std::make_unique<Module>(newest(ptx_images(binary.wrapper)).text, memory);
  return *binary.module;
}

const Kernel& Device::resolve(KernelHandle& handle) {
  if (handle.kernel == nullptr) {
    handle.kernel = module(*handle.binary).find(handle.name);
    if (handle.kernel == nullptr) throw Fault(FaultKind::bad_ptx, "the program's PTX has no kernel " + handle.name);
    handle.max_dynamic_shared = kMaxStaticShared - std::min(kMaxStaticShared, handle.kernel->static_shared_bytes);
  }
  return *handle.kernel;
}

const Variable* Device::variable(const void* host) {
  const auto found = variables_.find(host);
  return found == variables_.end() ? nullptr : module(*found->second.binary).variable(found->second.name);
}

int Device::target() {
  int target = 75;
  for (const auto& binary : binaries_) target = std::max(target, newest(ptx_images(binary->wrapper)).target);
  return target;
}

Stream* Device::stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &timeline.default_stream();
  auto* stream = reinterpret_cast<Stream*>(handle);
  return timeline.knows(stream) ? stream : nullptr;
}

void Device::fail(cudaError_t error) {
  if (sticky_ == cudaSuccess) sticky_ = error;
}

void Device::count(const Kernel& kernel, const LaunchStats& stats) {
  if (!settings.stats) return;
  complain(std::to_string(stats.warp_instructions) + " warp-instructions in " + readable(kernel.name));
}

cudaError_t error_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::bad_ptx:
      return cudaErrorInvalidPtx;
    case FaultKind::bad_launch:
      return cudaErrorInvalidConfiguration;
    case FaultKind::illegal_address:
      return cudaErrorIllegalAddress;
    case FaultKind::misaligned_address:
      return cudaErrorMisalignedAddress;
    case FaultKind::assertion:
      return cudaErrorAssert;
    case FaultKind::limit:
      return cudaErrorLaunchTimeout;
    case FaultKind::uninitialized:  // what a real device does not see at all
    case FaultKind::race:
    case FaultKind::barrier:
    case FaultKind::inactive_lane:
    case FaultKind::trap:
      return cudaErrorLaunchFailure;
  }
  return cudaErrorUnknown;
}

std::string readable(const std::string& mangled) {
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  const std::string text = demangled != nullptr ? demangled : mangled;
  std::free(demangled);
  return text;
}

void complain(const Fault& fault) {
  std::string text = fault.what();
  const std::string& kernel = fault.place().kernel;
  if (const size_t at = text.find(kernel); !kernel.empty() && at != std::string::npos)
    text.replace(at, kernel.size(), readable(kernel));
  std::fprintf(stderr, "%s\n", text.c_str());
}

void complain(const std::string& text) { std::fprintf(stderr, "simgpu: %s\n", text.c_str()); }

cudaError_t& last_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

int& current_device() {
  static thread_local int device = 0;
  return device;
}

}  // namespace simgpu

extern "C" {

uintptr_t simgpu_host_address(uintptr_t address) { return simgpu::Device::get().memory.host(address); }
int simgpu_has_context(int device) { return simgpu::Device::get().has_context(device) ? 1 : 0; }

}  // extern "C"
