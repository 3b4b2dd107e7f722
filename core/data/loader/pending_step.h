// pending_step: one step inside the loader: which of its tiles must be read, must be rendered, or are done.
//
// Thread: the loader's mutex guards it, except for the rows and bytes of a tile, which only the thread that took it
//   uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "core/data/loader/device_step.h"
#include "core/data/loader/loader.h"

namespace pal::data {

// The error of the lowest tile, independent of the order in which threads met errors.
struct FirstError {
  std::exception_ptr error;
  int64_t tile = 0;

  void keep(std::exception_ptr e, int64_t t) {
    if (!error || t < tile) {
      error = e;
      tile = t;
    }
  }
};

struct PendingStep {
  LoadedStep loaded;
  std::unique_ptr<DeviceStep> parts;        // set when the device renders
  DeviceDecoder* decoder = nullptr;         // set when the device also decodes
  std::vector<int64_t> local;               // this rank's samples
  std::vector<std::vector<uint8_t>> bytes;  // of each, kept from reading until rendering
  int64_t tile_samples = 1;
  int64_t tiles = 0, unread = 0, done = 0;  // tiles below `unread` are read, or a thread reads them
  std::deque<int64_t> readable;             // tiles whose bytes are in memory
  FirstError error;

  struct Range {
    size_t begin, end;
  };
  Range rows(int64_t tile) const {
    const auto n = static_cast<int64_t>(local.size());
    return {static_cast<size_t>(tile * tile_samples), static_cast<size_t>(std::min(n, (tile + 1) * tile_samples))};
  }
  bool ready() const { return done == tiles; }

  void read(const Dataset& data, int64_t tile) {
    for (auto [i, end] = rows(tile); i < end; ++i) data.read(local[i], bytes[i]);
  }
  int64_t tile_bytes(int64_t tile) const {
    int64_t sum = 0;
    for (auto [i, end] = rows(tile); i < end; ++i) sum += static_cast<int64_t>(bytes[i].size());
    return sum;
  }
  // Renders a tile whose bytes are in memory (or keeps the parts that its views need), and frees the bytes.
  void render(Renderer& tile, int64_t number, ViewSet& views) {
    views.large.step = static_cast<uint64_t>(loaded.step);
    if (parts) return keep_parts(tile, number, views);
    loaded.images.scalar_type() == at::kDouble ? render_as<double>(tile, number, views)
                                               : render_as<float>(tile, number, views);
  }

 private:
  void keep_parts(Renderer& tile, int64_t number, const ViewSet& views) {
    for (auto [i, end] = rows(number); i < end; ++i) {
      const double start = thread_seconds();
      Renderer::Started begun = decoder ? tile.begin(*decoder, local[i], bytes[i], views)
                                        : Renderer::Started{nullptr, tile.prepare(local[i], bytes[i], views)};
      parts->put(static_cast<int64_t>(i), begun.part, tile.params(), std::move(begun.image));
      bytes[i] = {};
      tile.times.decode += thread_seconds() - start;
    }
  }
  template <class T>
  void render_as(Renderer& tile, int64_t number, const ViewSet& views) {
    const auto large = static_cast<size_t>(views.large_views());
    std::vector<T*> out(views.policies.size());
    for (auto [i, end] = rows(number); i < end; ++i) {
      for (size_t v = 0; v < out.size(); ++v) {
        const at::Tensor& images = v < large ? loaded.images : loaded.small_images;
        const size_t row = (v < large ? v : v - large) * local.size() + i;
        out[v] = images.data_ptr<T>() + static_cast<int64_t>(row) * images.stride(0);
      }
      tile.augment(out, local[i], bytes[i], views);
      bytes[i] = {};
    }
  }
};

}  // namespace pal::data
