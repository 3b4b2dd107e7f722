#include "core/eval/embed.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/comm/rank_slices.h"
#include "core/data/loader/loader.h"
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

at::Tensor pixels(const data::Dataset& data, const std::vector<int64_t>& samples) {
  at::Tensor out;
  std::vector<uint8_t> bytes;
  for (size_t n = 0; n < samples.size(); ++n) {
    data.read(samples[n], bytes);
    const kernels::ImageView image = data.image(samples[n], bytes);
    const int64_t size = int64_t{image.height} * image.width * image.channels;
    if (!out.defined()) out = at::empty({static_cast<int64_t>(samples.size()), size}, at::kFloat);
    PAL_DATA_CHECK(out.size(1) == size,
                   "raw pixels need images of one size, but sample " + std::to_string(samples[n]) + " has",
                   std::to_string(size) + " values", "the first has " + std::to_string(out.size(1)));
    float* row = out.data_ptr<float>() + static_cast<int64_t>(n) * size;
    for (int64_t k = 0; k < size; ++k) row[k] = static_cast<float>(image.data[k]) / 255.0f;
  }
  return out;
}

}  // namespace pal::eval
