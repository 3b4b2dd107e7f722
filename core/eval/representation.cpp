#include "core/eval/representation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/data/loader/epoch_sampler.h"
#include "core/data/loader/loader.h"
#include "core/loss/contrast.h"
#include "core/model/encoder.h"

namespace pal::eval {

double feature_rank(const at::Tensor& features) {
  const at::NoGradGuard no_grad;
  if (features.size(0) < 2) return 0;
  const at::Tensor centered = features - features.mean(0, /*keepdim=*/true);
  const at::Tensor product =
      (features.size(0) < features.size(1) ? centered.mm(centered.t()) : centered.t().mm(centered)).to(at::kDouble);
  const double trace = product.diagonal().sum().item<double>(), square = product.square().sum().item<double>();
  return square > 0 ? trace * trace / square : 0;
}

double uniformity(const at::Tensor& features, int64_t rows) {
  const at::NoGradGuard no_grad;
  const int64_t n = std::min(rows, features.size(0));
  if (n < 2) return 0;
  const at::Tensor picked = at::arange(n, at::kLong).mul(features.size(0)).div(n, "floor");
  const at::Tensor z = loss::unit_rows(features.index_select(0, picked).to(at::kDouble)).rows;
  double sum = 0;  // by pieces of the matrix of pairs
  for (int64_t at = 0; at < n; at += 512) {
    const int64_t count = std::min<int64_t>(512, n - at);
    const at::Tensor square = 2 - 2 * z.narrow(0, at, count).mm(z.t());
    sum += square.clamp_min_(0).mul_(-2).exp_().sum().item<double>();
  }
  return std::log((sum - static_cast<double>(n)) / (static_cast<double>(n) * static_cast<double>(n - 1)));
}

double alignment(const at::Tensor& one, const at::Tensor& other) {
  const at::NoGradGuard no_grad;
  const at::Tensor difference = loss::unit_rows(one.to(at::kDouble)).rows - loss::unit_rows(other.to(at::kDouble)).rows;
  return difference.square().sum(1).mean().item<double>();
}

TwoViews embed_two_views(model::Encoder& encoder, std::shared_ptr<const data::Dataset> data,
                         const std::vector<int64_t>& samples, const data::ViewSet& views, const EmbedOptions& options,
                         comm::Comm& comm) {
  const at::NoGradGuard no_grad;
  const bool was_training = encoder.is_training();
  encoder.eval();
  data::LoaderOptions load;
  load.plan = {static_cast<int64_t>(samples.size()),
               std::min<int64_t>(options.batch * comm.size(), static_cast<int64_t>(samples.size())), 0};
  load.subset = samples;
  load.views = views;
  load.views.policies.resize(2, views.policies.front());
  load.views.small_views = 0;
  load.dtype = options.dtype;
  load.threads = options.threads;
  load.rank = comm.rank();
  load.ranks = comm.size();
  load.planned_until = load.plan.steps_per_epoch();
  const at::Device device = encoder.parameters().front().device();
  data::render_on(device, *data, load);
  data::Loader loader(std::move(data), load);
  std::vector<at::Tensor> one, other;
  for (int64_t step = 0; step < load.planned_until; ++step) {
    const data::LoadedStep loaded = loader.next();
    std::vector<int64_t> counts;
    for (int r = 0; r < comm.size(); ++r) counts.push_back(loaded.rank_begin[r + 1] - loaded.rank_begin[r]);
    const at::Tensor z = encoder.features(loaded.images.to(device));
    const int64_t n = z.size(0) / 2;
    one.push_back(comm.all_gather_v(z.narrow(0, 0, n).contiguous(), counts));
    other.push_back(comm.all_gather_v(z.narrow(0, n, n).contiguous(), counts));
  }
  encoder.train(was_training);
  return {at::cat(one).cpu(), at::cat(other).cpu()};
}

PlaneMap principal_plane(const at::Tensor& features) {
  const at::NoGradGuard no_grad;
  PlaneMap map;
  const int64_t n = features.size(0);
  map.points = at::zeros({n, 2}, at::kDouble);
  if (n < 2) return map;
  const at::Tensor x = features.to(at::kDouble);
  const at::Tensor centered = x - x.mean(0, /*keepdim=*/true);
  const auto [values, vectors] = at::linalg_eigh(centered.t().mm(centered));
  const double total = std::max(values.sum().item<double>(), 1e-300);
  const int64_t dims = x.size(1);
  for (int64_t k = 0; k < std::min<int64_t>(2, dims); ++k) {
    at::Tensor direction = vectors.select(1, dims - 1 - k);
    if (direction[direction.abs().argmax().item<int64_t>()].item<double>() < 0) direction = -direction;
    map.points.select(1, k).copy_(centered.mv(direction));
    map.share[k] = std::max(0.0, values[dims - 1 - k].item<double>()) / total;
  }
  return map;
}

}  // namespace pal::eval
