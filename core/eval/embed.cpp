#include "core/eval/embed.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>
#include <utility>

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

// Copies rows to the host, in order. Those of a GPU are copied through pinned memory in the current stream: add() waits
// for the rows before, which the device completed while the host prepared these.
class RowsToHost {
 public:
  explicit RowsToHost(at::Tensor host) : host_(std::move(host)) {}

  void add(const at::Tensor& rows) {
    if (rows.is_cpu()) return write(rows);
    Copy copy{at::empty(rows.sizes(), rows.options().device(at::kCPU).pinned_memory(true)),
              c10::Event(rows.device().type())};
    copy.rows.copy_(rows, /*non_blocking=*/true);
    copy.done.record(c10::impl::VirtualGuardImpl(rows.device().type()).getStream(rows.device()));
    finish();
    under_way_.emplace(std::move(copy));
  }

  // Call it after the last add().
  void finish() {
    if (!under_way_) return;
    under_way_->done.synchronize();
    write(under_way_->rows);
    under_way_.reset();
  }

  int64_t written() const { return written_; }

 private:
  struct Copy {
    at::Tensor rows;
    c10::Event done;
  };

  void write(const at::Tensor& rows) {
    host_.narrow(0, written_, rows.size(0)).copy_(rows);
    written_ += rows.size(0);
  }

  const at::Tensor host_;
  int64_t written_ = 0;
  std::optional<Copy> under_way_;
};

// A loader keeps its data set alive; here the caller does.
std::shared_ptr<const data::Dataset> borrowed(const data::Dataset& data) {
  return {std::shared_ptr<const data::Dataset>(), &data};
}

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
  const at::Tensor own = at::empty({slice.last - slice.first, dims}, at::TensorOptions(options.dtype));
  if (own.size(0) == 0) return own;
  data::LoaderOptions load = data::center_views(data, {samples.begin() + slice.first, samples.begin() + slice.last},
                                                options.batch, options.augment, options.dtype);
  load.threads = options.threads;
  data::render_on(device, data, load);
  data::Loader loader(borrowed(data), load);
  RowsToHost rows(own);
  for (int64_t step = 0; step < load.planned_until; ++step) {
    at::Tensor out = encoder.features(loader.next().images.to(device));
    if (options.what == EmbedWhat::embedding) out = encoder.project(out);
    rows.add(out);
    if (options.progress) options.progress(rows.written());
  }
  rows.finish();
  if (options.progress) options.progress(rows.written());
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
  const at::Tensor out = at::empty({n, size}, at::kFloat);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; raw && i < n; ++i) {
    data.read(samples[i], bytes);
    float* row = out.data_ptr<float>() + i * size;
    for (int64_t k = 0; k < size; ++k) row[k] = static_cast<float>(bytes[k]) / 255.0f;
    if (progress && ((i + 1) % kChunk == 0 || i + 1 == n)) progress(i + 1);
  }
  if (raw || n == 0) return out;
  data::LoaderOptions load = data::center_views(data, samples, kChunk, options, at::kFloat);
  load.threads = threads;
  data::Loader loader(borrowed(data), load);
  RowsToHost rows(out);
  for (int64_t step = 0; step < load.planned_until; ++step) {
    rows.add(loader.next().images.flatten(1));
    if (progress) progress(rows.written());
  }
  return out;
}

}  // namespace pal::eval
