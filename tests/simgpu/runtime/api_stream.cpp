// api_stream: streams, events, and waiting for them.
#include <chrono>
#include <future>

#include "tests/simgpu/runtime/counters.h"
#include "tests/simgpu/runtime/device.h"

using namespace simgpu;

namespace {

template <class F>
cudaError_t on_stream(cudaStream_t handle, const F& f) {
  return call([&](Device& device) {
    Stream* stream = device.stream(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : f(device, *stream);
  });
}

template <class F>
cudaError_t on_event(cudaEvent_t handle, const F& f) {
  return call([&](Device& device) {
    auto* event = reinterpret_cast<Event*>(handle);
    return device.events.count(event) == 0 ? cudaErrorInvalidResourceHandle : f(device, *event);
  });
}

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return call([&](Device& device) {
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *out = reinterpret_cast<cudaStream_t>(
        &device.timeline.create(flags == cudaStreamNonBlocking ? StreamKind::non_blocking : StreamKind::blocking));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreate(cudaStream_t* out) { return cudaStreamCreateWithFlags(out, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int) {
  return cudaStreamCreateWithFlags(out, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return on_stream(handle, [](Device& device, Stream& stream) {
    if (stream.kind == StreamKind::legacy_default) return cudaErrorInvalidResourceHandle;
    device.timeline.destroy(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return on_stream(handle, [](Device& device, Stream& stream) {
    count_event(Count::wait, "stream");
    device.timeline.finish(stream.last);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return on_stream(handle, [](Device& device, Stream& stream) {
    return device.timeline.query(stream.last) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  return on_event(event, [&](Device& device, Event& e) {
    Stream* stream = device.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    device.timeline.order(*stream, e.recorded);
    return cudaSuccess;
  });
}

// The function runs in a thread of its own, so that it may wait for other processes while this one asks or computes.
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return on_stream(handle, [&](Device& device, Stream& stream) {
    if (function == nullptr) return cudaErrorInvalidValue;
    auto running = std::make_shared<std::future<void>>();
    device.timeline.add_polled(stream, [running, function, data] {
      if (!running->valid()) *running = std::async(std::launch::async, function, data);
      return running->wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return on_stream(handle, [&](Device&, Stream&) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*) {
  if (id != nullptr) *id = 0;
  return cudaStreamIsCapturing(handle, status);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaDeviceSynchronize() {
  return call([](Device& device) {
    count_event(Count::wait, "device");
    device.timeline.finish_all();
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  return call([&](Device& device) {
    auto* event = new Event;
    device.events.insert(event);
    *out = reinterpret_cast<cudaEvent_t>(event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* out) { return cudaEventCreateWithFlags(out, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return on_event(handle, [](Device& device, Event& event) {
    device.events.erase(&event);
    delete &event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return on_event(handle, [&](Device& device, Event& event) {
    Stream* stream = device.stream(stream_handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    auto time = std::make_shared<int64_t>(0);
    event.nanoseconds = time;
    event.recorded = device.timeline.add(*stream, [time] { *time = nanoseconds(); });
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return on_event(handle, [](Device& device, Event& event) {
    count_event(Count::wait, "event");
    device.timeline.finish(event.recorded);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return on_event(handle, [](Device& device, Event& event) {
    return device.timeline.query(event.recorded) ? cudaSuccess : cudaErrorNotReady;
  });
}

// Of the interpreter's clock: it says nothing about a GPU.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return on_event(begin, [&](Device& device, Event& b) {
    auto* e = reinterpret_cast<Event*>(end);
    if (device.events.count(e) == 0 || b.recorded == nullptr || e->recorded == nullptr)
      return cudaErrorInvalidResourceHandle;
    if (!b.recorded->done || !e->recorded->done) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(*e->nanoseconds - *b.nanoseconds) * 1e-6f;
    return cudaSuccess;
  });
}

}  // extern "C"
