#include "core/eval/embed.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/comm/rank_slices.h"
#include "core/data/loader/augment_spec.h"
#include "core/data/loader/loader.h"
#include "core/io/regular_file.h"
#include "core/model/encoder.h"
#include "kernels/base/error.h"

namespace pal::eval {
namespace {

// Evaluation mode for a scope.
class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& m) : module_(m), was_training_(m.is_training()) { module_.eval(); }
  ~EvalMode() { module_.train(was_training_); }

 private:
  torch::nn::Module& module_;
  bool was_training_;
};

}  // namespace

SampleSlice own_slice(int64_t samples, const comm::Comm& comm) {
  const std::vector<int64_t> begin = comm::rank_slices(samples, comm.size());
  return {begin[comm.rank()], begin[comm.rank() + 1]};
}

at::Tensor embed_slice(model::Encoder& encoder, const data::Dataset& data, const std::vector<int64_t>& samples,
                       SampleSlice slice, const EmbedOptions& options) {
  const at::NoGradGuard no_grad;
  const EvalMode mode(encoder);
  const at::Device device = encoder.parameters().front().device();
  const int64_t dims = options.what == EmbedWhat::features ? encoder.feature_dims() : encoder.embedding_dims();
  at::Tensor own = at::empty({slice.last - slice.first, dims}, at::TensorOptions(options.dtype));
  for (int64_t at = slice.first; at < slice.last; at += options.batch) {
    const int64_t end = std::min(slice.last, at + options.batch);
    const std::vector<int64_t> ids(samples.begin() + at, samples.begin() + end);
    const at::Tensor images = data::load_center_views(data, ids, options.augment, options.dtype, options.threads);
    at::Tensor out = encoder.features(images.to(device));
    if (options.what == EmbedWhat::embedding) out = encoder.project(out);
    own.narrow(0, at - slice.first, end - at).copy_(out);
    if (options.progress) options.progress(end - slice.first);
  }
  return own;
}

at::Tensor embed(model::Encoder& encoder, const data::Dataset& data, const std::vector<int64_t>& samples,
                 const EmbedOptions& options, comm::Comm& comm) {
  const auto n = static_cast<int64_t>(samples.size());
  const std::vector<int64_t> begin = comm::rank_slices(n, comm.size());
  std::vector<int64_t> counts;
  for (int r = 0; r < comm.size(); ++r) counts.push_back(begin[r + 1] - begin[r]);
  return comm.all_gather_v(embed_slice(encoder, data, samples, own_slice(n, comm), options), counts);
}

at::Tensor inputs(const data::Dataset& data, const std::vector<int64_t>& samples, const data::AugmentSpec& augment,
                  int threads, const std::function<void(int64_t)>& progress) {
  constexpr int64_t kChunk = 1024;
  const auto n = static_cast<int64_t>(samples.size());
  const std::vector<int32_t> shape = data.shape();
  const int64_t stored = int64_t{shape[0]} * shape[1] * shape[2];
  const bool raw = data.encoding() == data::Encoding::raw && stored > 0;
  kernels::AugmentOptions options;
  if (!raw) {
    options = data::augment_options(augment, data);
    for (size_t c = 0; c < 3; ++c) options.mean[c] = 0, options.std[c] = 1;
  }
  const int64_t size = raw ? stored : int64_t{options.size} * options.size * options.channels;
  io::check_fits_memory("the data set as pixels", sizeof(float) * static_cast<double>(n * size));
  at::Tensor out = at::empty({n, size}, at::kFloat);
  std::vector<uint8_t> bytes;
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t end = std::min(n, first + kChunk);
    if (!raw) {
      const std::vector<int64_t> some(samples.begin() + first, samples.begin() + end);
      out.narrow(0, first, end - first)
          .copy_(data::load_center_views(data, some, options, at::kFloat, threads).flatten(1));
    }
    for (int64_t i = first; raw && i < end; ++i) {
      data.read(samples[i], bytes);
      float* row = out.data_ptr<float>() + i * size;
      for (int64_t k = 0; k < size; ++k) row[k] = static_cast<float>(bytes[k]) / 255.0f;
    }
    if (progress) progress(end);
  }
  return out;
}

}  // namespace pal::eval
