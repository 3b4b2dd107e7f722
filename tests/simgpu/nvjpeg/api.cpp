// api: the functions of libnvjpeg.so.13 that our code calls, over libjpeg and plain calls of the CUDA runtime.
#include <nvjpeg.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "tests/simgpu/nvjpeg/picture.h"

using namespace simnvjpeg;

namespace {

std::atomic<int> complaints = 0;

nvjpegStatus_t complain(const std::string& sentence) {
  ++complaints;
  std::fprintf(stderr, "simnvjpeg: %s\n", sentence.c_str());
  return NVJPEG_STATUS_INVALID_PARAMETER;
}

// Every object that was made and not destroyed.
struct Objects {
  std::mutex mutex;
  std::set<const void*> live;
};
Objects& objects() {
  static Objects all;
  return all;
}

bool lives(const void* object) {
  const std::lock_guard lock(objects().mutex);
  return objects().live.count(object) > 0;
}

template <class T>
nvjpegStatus_t make(T** out) {
  *out = new T;
  const std::lock_guard lock(objects().mutex);
  objects().live.insert(*out);
  return NVJPEG_STATUS_SUCCESS;
}

template <class T>
nvjpegStatus_t destroy(T* object, const char* what) {
  {
    const std::lock_guard lock(objects().mutex);
    if (objects().live.erase(object) == 0)
      return complain(std::string(what) + " is destroyed, and it is none, or was destroyed before");
  }
  delete object;
  return NVJPEG_STATUS_SUCCESS;
}

uint64_t sum_of(const uint8_t* data, size_t bytes) {
  uint64_t sum = 14695981039346656037ULL;
  for (size_t i = 0; i < bytes; ++i) sum = (sum ^ data[i]) * 1099511628211ULL;
  return sum;
}

bool on_device(const void* address) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, address) == cudaSuccess && attributes.type == cudaMemoryTypeDevice;
}

// SIMNVJPEG_FAIL=n: the status that the next phase on the device returns, as a broken device would.
nvjpegStatus_t device_status() {
  const char* text = std::getenv("SIMNVJPEG_FAIL");
  return text == nullptr ? NVJPEG_STATUS_SUCCESS : static_cast<nvjpegStatus_t>(std::atoi(text));
}

enum class Phase { none, host, transferred };

}  // namespace

struct nvjpegHandle {
  size_t device_padding = 0, pinned_padding = 0;
};
struct nvjpegJpegDecoder {};
struct nvjpegBufferPinned {
  uint8_t* memory = nullptr;
  size_t bytes = 0;
};
struct nvjpegBufferDevice {
  uint8_t* memory = nullptr;
  size_t bytes = 0;
  cudaStream_t stream = nullptr;  // of its last use
  bool used = false;
};
struct nvjpegJpegStream {
  const uint8_t* data = nullptr;  // the caller's: nothing is copied
  size_t bytes = 0;
  uint64_t sum = 0;
  Header header;
};
struct nvjpegDecodeParams {
  nvjpegOutputFormat_t format = NVJPEG_OUTPUT_UNCHANGED;
  int x = 0, y = 0, width = -1, height = -1;
};
struct nvjpegJpegState {
  nvjpegBufferPinned* pinned = nullptr;
  nvjpegBufferDevice* device = nullptr;
  Phase phase = Phase::none;
  const nvjpegJpegStream* parsed = nullptr;
  int width = 0, height = 0;       // of the part
  std::atomic<int> in_flight = 0;  // phases on the device that are not over
};

extern "C" {

int simnvjpegComplaints() { return complaints; }
int simnvjpegLive() {
  const std::lock_guard lock(objects().mutex);
  return static_cast<int>(objects().live.size());
}

nvjpegStatus_t nvjpegGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? NVJPEG_VER_MAJOR : type == MINOR_VERSION ? NVJPEG_VER_MINOR : NVJPEG_VER_PATCH;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, nvjpegDevAllocator_t*, nvjpegPinnedAllocator_t*, unsigned,
                              nvjpegHandle_t* handle) {
  if (backend != NVJPEG_BACKEND_HYBRID) return complain("a backend that the stand-in does not know");
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return NVJPEG_STATUS_NOT_INITIALIZED;
  return make(handle);
}
nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle) {
  if (simnvjpegLive() != 1) complain("the handle is destroyed before what was made with it");
  return destroy(handle, "a handle");
}
nvjpegStatus_t nvjpegSetDeviceMemoryPadding(size_t padding, nvjpegHandle_t handle) {
  if (!lives(handle)) return complain("padding of a handle that is none");
  handle->device_padding = padding;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegSetPinnedMemoryPadding(size_t padding, nvjpegHandle_t handle) {
  if (!lives(handle)) return complain("padding of a handle that is none");
  handle->pinned_padding = padding;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecoderCreate(nvjpegHandle_t handle, nvjpegBackend_t, nvjpegJpegDecoder_t* decoder) {
  return lives(handle) ? make(decoder) : complain("a decoder of a handle that is none");
}
nvjpegStatus_t nvjpegDecoderDestroy(nvjpegJpegDecoder_t decoder) { return destroy(decoder, "a decoder"); }

nvjpegStatus_t nvjpegDecoderStateCreate(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder, nvjpegJpegState_t* state) {
  return lives(handle) && lives(decoder) ? make(state) : complain("a state of a handle or decoder that is none");
}
nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state) {
  if (lives(state) && state->in_flight > 0) return complain("a state is destroyed while the device uses it");
  return destroy(state, "a state");
}

nvjpegStatus_t nvjpegBufferPinnedCreate(nvjpegHandle_t handle, nvjpegPinnedAllocator_t*, nvjpegBufferPinned_t* buffer) {
  return lives(handle) ? make(buffer) : complain("a buffer of a handle that is none");
}
nvjpegStatus_t nvjpegBufferPinnedDestroy(nvjpegBufferPinned_t buffer) {
  if (lives(buffer)) cudaFreeHost(buffer->memory);
  return destroy(buffer, "a pinned buffer");
}
nvjpegStatus_t nvjpegBufferDeviceCreate(nvjpegHandle_t handle, nvjpegDevAllocator_t*, nvjpegBufferDevice_t* buffer) {
  return lives(handle) ? make(buffer) : complain("a buffer of a handle that is none");
}
nvjpegStatus_t nvjpegBufferDeviceDestroy(nvjpegBufferDevice_t buffer) {
  if (lives(buffer)) cudaFree(buffer->memory);
  return destroy(buffer, "a device buffer");
}
nvjpegStatus_t nvjpegStateAttachPinnedBuffer(nvjpegJpegState_t state, nvjpegBufferPinned_t buffer) {
  if (!lives(state) || !lives(buffer)) return complain("a pinned buffer is attached, and it or the state is none");
  state->pinned = buffer;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegStateAttachDeviceBuffer(nvjpegJpegState_t state, nvjpegBufferDevice_t buffer) {
  if (!lives(state) || !lives(buffer)) return complain("a device buffer is attached, and it or the state is none");
  state->device = buffer;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStreamCreate(nvjpegHandle_t handle, nvjpegJpegStream_t* stream) {
  return lives(handle) ? make(stream) : complain("a stream of a handle that is none");
}
nvjpegStatus_t nvjpegJpegStreamDestroy(nvjpegJpegStream_t stream) { return destroy(stream, "a stream"); }
nvjpegStatus_t nvjpegJpegStreamParse(nvjpegHandle_t handle, const unsigned char* data, size_t bytes, int, int save,
                                     nvjpegJpegStream_t stream) {
  if (!lives(handle) || !lives(stream)) return complain("a file is parsed, and the handle or the stream is none");
  if (save != 0) return complain("the stand-in does not copy files");
  if (!read_header(stream->header, data, bytes)) return NVJPEG_STATUS_BAD_JPEG;
  stream->data = data;
  stream->bytes = bytes;
  stream->sum = sum_of(data, bytes);
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeParamsCreate(nvjpegHandle_t handle, nvjpegDecodeParams_t* params) {
  return lives(handle) ? make(params) : complain("parameters of a handle that is none");
}
nvjpegStatus_t nvjpegDecodeParamsDestroy(nvjpegDecodeParams_t params) { return destroy(params, "a set of parameters"); }
nvjpegStatus_t nvjpegDecodeParamsSetOutputFormat(nvjpegDecodeParams_t params, nvjpegOutputFormat_t format) {
  params->format = format;
  return format == NVJPEG_OUTPUT_RGBI ? NVJPEG_STATUS_SUCCESS : complain("an output that the stand-in does not know");
}
nvjpegStatus_t nvjpegDecodeParamsSetROI(nvjpegDecodeParams_t params, int x, int y, int width, int height) {
  if (!lives(params)) return complain("a region of parameters that are none");
  params->x = x, params->y = y, params->width = width, params->height = height;
  return NVJPEG_STATUS_SUCCESS;
}

// 0: it does. Four components and odd samplings it does not.
nvjpegStatus_t nvjpegDecoderJpegSupported(nvjpegJpegDecoder_t decoder, nvjpegJpegStream_t stream,
                                          nvjpegDecodeParams_t params, int* refused) {
  if (!lives(decoder) || !lives(stream) || !lives(params))
    return complain("a question about a decoder, stream or parameters that are none");
  *refused = stream->header.known ? 0 : 1;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeJpegHost(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder, nvjpegJpegState_t state,
                                    nvjpegDecodeParams_t params, nvjpegJpegStream_t stream) {
  if (!lives(handle) || !lives(decoder) || !lives(state) || !lives(params) || !lives(stream))
    return complain("host phase with an object that is none");
  if (stream->data == nullptr) return complain("host phase of a stream that holds no file");
  if (state->pinned == nullptr || !lives(state->pinned)) return complain("host phase without a pinned buffer");
  if (state->in_flight > 0) return complain("host phase of a state that the device still uses");
  if (params->format != NVJPEG_OUTPUT_RGBI) return complain("host phase without an output format");
  if (!stream->header.known) return NVJPEG_STATUS_JPEG_NOT_SUPPORTED;
  if (params->x < 0 || params->y < 0 || params->width < 1 || params->height < 1 ||
      params->x > stream->header.width - params->width || params->y > stream->header.height - params->height) {
    return complain("a region outside of the picture");
  }
  std::vector<uint8_t> rgb;
  if (!read_pixels(rgb, stream->data, stream->bytes)) return NVJPEG_STATUS_BAD_JPEG;
  state->width = params->width;
  state->height = params->height;
  const size_t line = size_t{3} * static_cast<size_t>(params->width), need = line * static_cast<size_t>(params->height);
  nvjpegBufferPinned& pinned = *state->pinned;
  if (pinned.bytes < need) {
    cudaFreeHost(pinned.memory);
    pinned.bytes = need + handle->pinned_padding;
    if (cudaMallocHost(reinterpret_cast<void**>(&pinned.memory), pinned.bytes) != cudaSuccess)
      return NVJPEG_STATUS_ALLOCATOR_FAILURE;
  }
  for (int y = 0; y < params->height; ++y) {
    const size_t from = 3 * (static_cast<size_t>(params->y + y) * static_cast<size_t>(stream->header.width) +
                             static_cast<size_t>(params->x));
    std::memcpy(pinned.memory + line * static_cast<size_t>(y), rgb.data() + from, line);
  }
  state->parsed = stream;
  state->phase = Phase::host;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeJpegTransferToDevice(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder,
                                                nvjpegJpegState_t state, nvjpegJpegStream_t stream, cudaStream_t cuda) {
  if (!lives(handle) || !lives(decoder) || !lives(state) || !lives(stream))
    return complain("transfer with an object that is none");
  if (state->phase != Phase::host || state->parsed != stream) return complain("transfer without its host phase");
  if (sum_of(stream->data, stream->bytes) != stream->sum)
    return complain("transfer of a file whose bytes are no longer there");
  if (state->device == nullptr || !lives(state->device)) return complain("transfer without a device buffer");
  nvjpegBufferDevice& device = *state->device;
  if (device.used && device.stream != cuda) return complain("a device buffer is used on two streams");
  const size_t need = size_t{3} * static_cast<size_t>(state->width) * static_cast<size_t>(state->height);
  if (device.bytes < need) {
    cudaStreamSynchronize(cuda);
    cudaFree(device.memory);
    device.bytes = need + handle->device_padding;
    if (cudaMalloc(reinterpret_cast<void**>(&device.memory), device.bytes) != cudaSuccess)
      return NVJPEG_STATUS_ALLOCATOR_FAILURE;
  }
  device.used = true;
  device.stream = cuda;
  ++state->in_flight;
  state->phase = Phase::transferred;
  return cudaMemcpyAsync(device.memory, state->pinned->memory, need, cudaMemcpyHostToDevice, cuda) == cudaSuccess
             ? NVJPEG_STATUS_SUCCESS
             : NVJPEG_STATUS_EXECUTION_FAILED;
}

nvjpegStatus_t nvjpegDecodeJpegDevice(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder, nvjpegJpegState_t state,
                                      nvjpegImage_t* out, cudaStream_t cuda) {
  if (!lives(handle) || !lives(decoder) || !lives(state)) return complain("device phase with an object that is none");
  if (state->phase != Phase::transferred) return complain("device phase without its transfer");
  if (state->device->stream != cuda) return complain("device phase on another stream than its transfer");
  const size_t line = size_t{3} * static_cast<size_t>(state->width), pitch = out->pitch[0];
  if (pitch < line)
    return complain("a pitch of " + std::to_string(pitch) + " for lines of " + std::to_string(line) + " bytes");
  const uint8_t* last = out->channel[0] + pitch * static_cast<size_t>(state->height - 1) + line - 1;
  if (!on_device(out->channel[0]) || !on_device(last))
    return complain("an output that is not, or not all, in the device's memory");
  state->phase = Phase::none;
  const cudaError_t copied = cudaMemcpy2DAsync(out->channel[0], pitch, state->device->memory, line, line,
                                               static_cast<size_t>(state->height), cudaMemcpyDeviceToDevice, cuda);
  const auto over = [](void* data) { --static_cast<nvjpegJpegState*>(data)->in_flight; };
  if (cudaLaunchHostFunc(cuda, over, state) != cudaSuccess || copied != cudaSuccess)
    return NVJPEG_STATUS_EXECUTION_FAILED;
  return device_status();
}

}  // extern "C"
