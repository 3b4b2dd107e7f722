#include "tests/simgpu/runtime/copies.h"

#include <cstring>

#include "tests/simgpu/runtime/counters.h"

namespace simgpu {
namespace {

enum class Side { pageable, pinned, device };

// How many bytes from the first to behind the last.
size_t extent(size_t pitch, size_t width, size_t height) { return (height - 1) * pitch + width; }

Side side_of(const Device& device, const void* address) {
  const Allocation* allocation = device.memory.find(address);
  if (allocation == nullptr) return Side::pageable;
  return allocation->space == Space::pinned_host ? Side::pinned : Side::device;
}

enum class Named { host, device };

// Whether what the call names and where the address lies agree. Managed memory is both.
bool agrees(const Device& device, const void* address, Named named) {
  const Allocation* allocation = device.memory.find(address);
  if (allocation != nullptr && allocation->space == Space::managed) return true;
  return (side_of(device, address) == Side::device) == (named == Named::device);
}

const char* name(Named named) { return named == Named::device ? "device" : "host"; }

void move_rows(const Device& device, const Copy& c) {
  char* const to = static_cast<char*>(device.memory.host(c.to));
  const char* const from = static_cast<const char*>(device.memory.host(c.from));
  for (size_t row = 0; row < c.height; ++row) std::memmove(to + row * c.to_pitch, from + row * c.from_pitch, c.width);
}

// Empty, or what is wrong with the device's side of it.
std::string refusal(const Device& device, const void* address, size_t bytes, Access access) {
  const Allocation* allocation = device.memory.find(address);
  if (allocation == nullptr) return "";              // the host's own memory
  if (!allocation->writable) access = Access::read;  // constants are constant to kernels only
  return device.memory.refusal(address, bytes, access);
}

std::string refusal(const Device& device, const Copy& c) {
  const std::string to = refusal(device, c.to, extent(c.to_pitch, c.width, c.height), Access::write);
  return to.empty() ? refusal(device, c.from, extent(c.from_pitch, c.width, c.height), Access::read) : to;
}

void lost(Device& device, const std::string& what, const std::string& why) {
  complain("a " + what + " in a stream: " + why);
  device.fail(cudaErrorIllegalAddress);
}

// "host to device, pageable, blocking"
void count_copy(Side from, Side to, Return when, size_t bytes) {
  const auto place = [](Side side) { return side == Side::device ? "device" : "host"; };
  std::string what = std::string(place(from)) + " to " + place(to);
  if (from != Side::device || to != Side::device)
    what += from == Side::pageable || to == Side::pageable ? ", pageable" : ", pinned";
  count_event(Count::copy, what + (when == Return::when_done ? ", blocking" : ""), bytes);
}

}  // namespace

cudaError_t copy(Device& device, const Copy& c, cudaMemcpyKind kind, Return when, cudaStream_t handle) {
  Stream* stream = device.stream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (c.width > c.to_pitch || c.width > c.from_pitch) return cudaErrorInvalidPitchValue;
  if (c.width == 0 || c.height == 0) return cudaSuccess;
  const Side from = side_of(device, c.from), to = side_of(device, c.to);
  const Named source = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ? Named::device : Named::host;
  const Named target = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? Named::device : Named::host;
  if (kind != cudaMemcpyDefault && (!agrees(device, c.from, source) || !agrees(device, c.to, target))) {
    complain(std::string("copy refused: its kind says ") + name(source) + " to " + name(target) +
             ", but the addresses do not");
    return cudaErrorInvalidValue;
  }
  if (const std::string why = refusal(device, c); !why.empty()) {
    complain("copy refused: " + why);
    return cudaErrorInvalidValue;
  }

  count_copy(from, to, when, c.width * c.height);
  Copy staged = c;
  std::shared_ptr<std::vector<char>> stage;
  if (from == Side::pageable && to == Side::device) {
    stage = std::make_shared<std::vector<char>>(c.width * c.height);
    move_rows(device, {stage->data(), c.width, c.from, c.from_pitch, c.width, c.height});
    staged.from = stage->data();
    staged.from_pitch = c.width;
  }
  const WorkRef work = device.timeline.add(*stream, [&device, staged, stage] {
    if (device.sticky() != cudaSuccess) return;
    if (const std::string why = refusal(device, staged); !why.empty()) return lost(device, "copy", why);
    move_rows(device, staged);
  });
  const bool all_host = from != Side::device && to != Side::device,
             all_device = from == Side::device && to == Side::device;
  const bool pageable = from == Side::pageable || to == Side::pageable;
  const bool wait =
      when == Return::when_done ? !all_device && stage == nullptr : all_host || (pageable && stage == nullptr);
  if (wait) device.timeline.finish(work);
  return cudaSuccess;
}

cudaError_t fill(Device& device, const Fill& f, cudaStream_t handle) {
  Stream* stream = device.stream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (f.width > f.pitch) return cudaErrorInvalidPitchValue;
  if (f.width == 0 || f.height == 0) return cudaSuccess;
  const size_t bytes = extent(f.pitch, f.width, f.height);
  if (const std::string why = device.memory.refusal(f.to, bytes, Access::write); !why.empty()) {
    complain("fill refused: " + why);
    return cudaErrorInvalidValue;
  }
  device.timeline.add(*stream, [&device, f, bytes] {
    if (device.sticky() != cudaSuccess) return;
    const std::string why = device.memory.refusal(f.to, bytes, Access::write);
    if (!why.empty()) return lost(device, "fill", why);
    char* const to = static_cast<char*>(device.memory.host(f.to));
    for (size_t row = 0; row < f.height; ++row) std::memset(to + row * f.pitch, f.value, f.width);
  });
  return cudaSuccess;
}

}  // namespace simgpu
