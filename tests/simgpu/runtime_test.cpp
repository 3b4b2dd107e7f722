// runtime: the interface from the outside: memory, copies, streams, events, errors. Run with streams now and late:
// ordered work gives the same results in both modes, unordered work does not.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/simgpu/runtime/device.h"

namespace {

using simgpu::Device;

bool late() {
  const char* mode = std::getenv("SIMGPU_STREAMS");
  return mode != nullptr && std::strcmp(mode, "late") == 0;
}

class Runtime : public testing::Test {
 protected:
  static constexpr size_t kBytes = 256;
  void SetUp() override {
    ASSERT_EQ(cudaMalloc(&device_, kBytes), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&pinned_, kBytes), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaFree(device_), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  std::vector<unsigned char> read() const {
    std::vector<unsigned char> host(kBytes);
    EXPECT_EQ(cudaMemcpy(host.data(), device_, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }
  const unsigned char* pinned() const { return static_cast<unsigned char*>(pinned_); }

  void *device_ = nullptr, *pinned_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(Runtime, FreshMemoryIsNotZero) { EXPECT_EQ(read(), std::vector<unsigned char>(kBytes, 0xff)); }

TEST_F(Runtime, CopiesAndFillsDeviceMemory) {
  std::vector<unsigned char> host(kBytes);
  for (size_t i = 0; i < kBytes; ++i) host[i] = static_cast<unsigned char>(i);
  EXPECT_EQ(cudaMemcpy(device_, host.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(read(), host);
  EXPECT_EQ(cudaMemset(static_cast<char*>(device_) + 10, 7, 20), cudaSuccess);
  std::fill_n(host.begin() + 10, 20, 7);
  EXPECT_EQ(read(), host);
  EXPECT_EQ(cudaMemset2D(device_, 16, 9, 3, 4), cudaSuccess);
  for (int row = 0; row < 4; ++row) std::fill_n(host.begin() + 16 * row, 3, 9);
  EXPECT_EQ(read(), host);
  std::vector<unsigned char> corner(8), expected = {9, 9, 9, host[3], 9, 9, 9, host[19]};
  EXPECT_EQ(cudaMemcpy2D(corner.data(), 4, device_, 16, 4, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(corner, expected);
}

TEST_F(Runtime, AsyncWorkIsLateUntilTheStreamIsWaitedFor) {
  std::memset(pinned_, 1, kBytes);
  EXPECT_EQ(cudaMemsetAsync(device_, 5, kBytes, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(pinned_, device_, kBytes, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_EQ(pinned()[0], late() ? 1 : 5);
  EXPECT_EQ(read()[0], late() ? 0xff : 5);  // the default stream does not wait for a non-blocking one
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(pinned()[0], 5);
}

TEST_F(Runtime, PageableSourcesAreReadAtOncePinnedOnesLate) {
  std::vector<unsigned char> host(kBytes, 1);
  EXPECT_EQ(cudaMemcpyAsync(device_, host.data(), kBytes, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  std::fill(host.begin(), host.end(), 2);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(read()[0], 1);
  std::memset(pinned_, 1, kBytes);
  EXPECT_EQ(cudaMemcpyAsync(device_, pinned_, kBytes, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  std::memset(pinned_, 2, kBytes);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(read()[0], late() ? 2 : 1);
}

TEST_F(Runtime, EventsOrderStreams) {
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr, end = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device_, 5, kBytes, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), late() ? cudaErrorNotReady : cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(pinned_, device_, kBytes, cudaMemcpyDeviceToHost, other), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, other), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(pinned()[0], 5);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, other), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(Runtime, WrongCopiesAreRefused) {
  std::vector<char> host(2 * kBytes);
  EXPECT_EQ(cudaMemcpy(device_, host.data(), kBytes + 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), device_, kBytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(device_, 0, kBytes + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // not sticky: nothing ran
}

TEST_F(Runtime, Frees) {
  void* other = nullptr;
  ASSERT_EQ(cudaMallocAsync(&other, 64, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(other, 1, 64, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(other, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(cudaFree(other), cudaErrorInvalidValue);  // twice
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemset(other, 1, 1), cudaErrorInvalidValue);
  void* much = nullptr;
  EXPECT_EQ(cudaMalloc(&much, size_t{1} << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

TEST_F(Runtime, Pointers) {
  cudaPointerAttributes attributes{};
  int on_stack = 0;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, static_cast<char*>(device_) + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, pinned_), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, &on_stack), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

// As on a machine with a GPU.
TEST_F(Runtime, TheHostCannotTouchDeviceMemory) {
  EXPECT_DEATH(*static_cast<volatile char*>(device_) = 1, "host code touches device memory");
  EXPECT_DEATH([[maybe_unused]] const char c = *static_cast<volatile char*>(device_), "host code touches");
  *static_cast<volatile char*>(pinned_) = 1;
}

TEST(Interface, CallsWithoutDeviceWorkSucceedAfterALostDevice) {
  EXPECT_EXIT(
      {
        Device::get().fail(cudaErrorECCUncorrectable);
        int device = -1;
        char bus[32] = {};
        const bool asks = cudaGetDevice(&device) == cudaSuccess && device == 0 &&
                          cudaDeviceGetPCIBusId(bus, sizeof(bus), 0) == cudaSuccess;
        std::exit(asks && cudaDeviceSynchronize() == cudaErrorECCUncorrectable ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// A process that computes on device 1 and has a thread that never chose: it would create a context on device 0.
TEST(Interface, AThreadWithoutADeviceIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has no context yet
  EXPECT_EXIT(
      {
        Device::get().settings.devices = 2;
        void* memory = nullptr;
        const bool mine = cudaSetDevice(1) == cudaSuccess && cudaMalloc(&memory, 16) == cudaSuccess;
        cudaError_t other = cudaSuccess;
        std::thread([&] { other = cudaDeviceSynchronize(); }).join();
        std::exit(mine && other == cudaErrorInvalidDevice && cudaFree(memory) == cudaSuccess ? 0 : 1);
      },
      testing::ExitedWithCode(0), "works on device 0, but this process computes on device 1");
}

TEST(Interface, DeviceAndErrors) {
  int value = 0;
  EXPECT_EQ(cudaGetDeviceCount(&value), cudaSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0), cudaSuccess);
  EXPECT_EQ(value, 32);
  cudaDeviceProp properties{};
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.multiProcessorCount, 4);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
  EXPECT_EQ(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(&value)), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

}  // namespace
