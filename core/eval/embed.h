// embed: computes the features of a list of samples with the encoder in evaluation mode.
//
// The encoder's device computes, in float32 or float64 and without autocast. A loader reads and decodes ahead as in
// training, and features are copied to the host while the device computes the next ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/comm/comm.h"
#include "core/data/dataset.h"

namespace pal::data {
struct AugmentSpec;
}
namespace pal::model {
class Encoder;
}

namespace pal::eval {

enum class EmbedWhat { features, embedding };  // before or after the projector

struct EmbedOptions {
  EmbedWhat what = EmbedWhat::features;
  kernels::AugmentOptions augment;  // size, channels, mean, std of the center view
  at::ScalarType dtype = at::kFloat;
  int64_t batch = 256;                         // images per forward, at most
  int threads = 1;                             // of the loader
  std::function<void(int64_t done)> progress;  // images of this rank so far; may be empty
};

// (last − first, F) of samples[first … last), by this process, in host memory. Restores the encoder's mode.
struct SampleSlice {
  int64_t first = 0, last = 0;
};
SampleSlice own_slice(int64_t samples, const comm::Comm& comm);  // of rank_slices (core/comm/rank_slices.h)
at::Tensor embed_slice(model::Encoder& encoder, const data::Dataset& data, const std::vector<int64_t>& samples,
                       SampleSlice slice, const EmbedOptions& options);

// Collective. (samples.size(), F) in the order of `samples`, in host memory of every rank: each rank embeds its slice,
// then all-gather.
at::Tensor embed(model::Encoder& encoder, const data::Dataset& data, const std::vector<int64_t>& samples,
                 const EmbedOptions& options, comm::Comm& comm);

// (n, values) the samples themselves, the baseline without training: rows of features; or pixels in [0, 1], those that
// are stored (raw images of one size), else those of the center view (its side is data.size).
// `progress` gets the number of samples read so far.
// Throws Error (usage) where images of several sizes meet data.size=0, Error (data) where the memory is too small.
at::Tensor inputs(const data::Dataset& data, const std::vector<int64_t>& samples, const data::AugmentSpec& augment,
                  int threads, const std::function<void(int64_t done)>& progress = {});

}  // namespace pal::eval
