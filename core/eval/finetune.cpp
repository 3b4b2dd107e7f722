#include "core/eval/finetune.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/data/loader/epoch_sampler.h"
#include "core/data/loader/loader.h"
#include "core/eval/embed.h"
#include "core/eval/linear_probe.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/ops/named_tensors.h"
#include "core/ops/tensors.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::eval {
namespace {

data::LoaderOptions classifier_loader(const FinetuneOptions& o, const data::EpochSpec& plan,
                                      std::vector<int64_t> subset, int64_t steps, comm::Comm& comm) {
  data::LoaderOptions load;
  load.plan = plan;
  load.subset = std::move(subset);
  kernels::ViewPolicy crop;  // random crop of 8 to 100 % of the area and a flip
  crop.jitter = crop.gray = 0;
  load.views.policies = {crop};
  load.views.large = o.augment;
  load.views.large.seed = o.seed;
  load.views.decode = o.decode;
  load.dtype = o.dtype;
  load.rank = comm.rank();
  load.ranks = comm.size();
  load.threads = o.threads;
  load.planned_until = steps;
  return load;
}

// Sums the gradients over ranks in fp64, rounded once, in the memory layout of the parameters.
void sum_gradients(const ops::NamedTensors& parameters, comm::Comm& comm) {
  std::vector<at::Tensor> flat;
  for (const auto& [name, p] : parameters)
    flat.push_back((p.grad().defined() ? p.grad() : at::zeros_like(p)).to(at::kDouble).reshape({-1}));
  const at::Tensor all = at::cat(flat);
  comm.all_reduce(all);
  int64_t from = 0;
  for (const auto& [name, p] : parameters) {
    p.mutable_grad() = at::empty_like(p).copy_(all.narrow(0, from, p.numel()).view(p.sizes()));
    from += p.numel();
  }
}

}  // namespace

std::vector<int64_t> labeled_share(const std::vector<int64_t>& labels, int64_t classes, double fraction,
                                   uint64_t seed) {
  std::vector<std::vector<std::pair<uint64_t, int64_t>>> of(static_cast<size_t>(classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    PAL_DATA_CHECK(labels[i] < classes, "label out of range at sample " + std::to_string(i), labels[i],
                   "the set has " + std::to_string(classes) + " classes");
    if (labels[i] >= 0)
      of[static_cast<size_t>(labels[i])].emplace_back(Random(seed, Purpose::labels, 1, i).next_u64(),
                                                      static_cast<int64_t>(i));
  }
  std::vector<int64_t> kept;
  for (auto& drawn : of) {
    std::sort(drawn.begin(), drawn.end());
    const auto count = static_cast<size_t>(std::llround(fraction * static_cast<double>(drawn.size())));
    for (size_t k = 0; k < std::min(drawn.size(), std::max<size_t>(count, 1)); ++k) kept.push_back(drawn[k].second);
  }
  std::sort(kept.begin(), kept.end());
  PAL_DATA_CHECK(!kept.empty(), "no sample of the training set has a label", "", "import it with labels");
  return kept;
}

Accuracy finetune(model::Encoder& encoder, std::shared_ptr<const data::Dataset> train, const data::Dataset& test,
                  const FinetuneOptions& o, comm::Comm& comm) {
  const auto classes = static_cast<int64_t>(train->classes().size());
  const std::vector<int64_t> subset = labeled_share(train->labels(), classes, o.fraction, o.seed);
  const data::EpochSpec plan{static_cast<int64_t>(subset.size()),
                             std::min<int64_t>(o.global_batch, static_cast<int64_t>(subset.size())), o.seed};
  const int64_t steps = o.epochs * plan.steps_per_epoch();
  const at::Device device = encoder.parameters().front().device();
  data::LoaderOptions load = classifier_loader(o, plan, subset, steps, comm);
  data::render_on(device, *train, load);
  data::Loader loader(train, load);

  const at::TensorOptions numbers = at::TensorOptions(o.dtype).device(device);
  // The head starts at zero, so its first gradient does not depend on the seed.
  const ops::NamedTensors head = {
      {"head.weight", at::zeros({classes, encoder.feature_dims()}, numbers).requires_grad_(true)},
      {"head.bias", at::zeros({classes}, numbers).requires_grad_(true)}};
  ops::NamedTensors backbone;
  if (o.part == TrainedPart::all) {
    for (const auto& named : model::trainable(encoder)) {
      if (named.first.starts_with("backbone.")) backbone.push_back(named);
    }
  }
  optim::OptimSpec sgd;
  sgd.kind = optim::OptimizerKind::sgd;
  sgd.momentum = o.momentum;
  sgd.weight_decay = o.weight_decay;
  const auto head_optimizer = optim::make_optimizer(sgd, head);
  const auto backbone_optimizer = backbone.empty() ? nullptr : optim::make_optimizer(sgd, backbone);
  const double scale = static_cast<double>(plan.global_batch) / 256;
  const optim::Schedule cosine{1, 0, steps, 0};
  ops::NamedTensors all = head;
  all.insert(all.end(), backbone.begin(), backbone.end());

  o.part == TrainedPart::all ? encoder.train() : encoder.eval();
  for (int64_t step = 0; step < steps; ++step) {
    const data::LoadedStep loaded = loader.next();
    const int64_t begin = loaded.rank_begin[comm.rank()], end = loaded.rank_begin[comm.rank() + 1];
    std::vector<int64_t> labels;
    for (int64_t i = begin; i < end; ++i)
      labels.push_back(train->labels()[static_cast<size_t>(loaded.samples[static_cast<size_t>(i)])]);
    at::Tensor features;
    {
      const at::AutoGradMode gradients(o.part == TrainedPart::all);
      features = encoder.features(loaded.images.to(device));
    }
    const at::Tensor scores = at::linear(features, head[0].second, head[1].second);
    const at::Tensor loss = at::cross_entropy_loss(scores, ops::to_device_of(scores, labels), {}, at::Reduction::Sum) /
                            static_cast<double>(loaded.samples.size());
    for (const auto& named : all) named.second.mutable_grad() = at::Tensor();
    loss.backward();
    {
      const at::NoGradGuard no_grad;
      sum_gradients(all, comm);
      model::commit_batch_norm(encoder);
      head_optimizer->step(o.lr * scale * cosine.at(step));
      if (backbone_optimizer) backbone_optimizer->step(o.encoder_lr * scale * cosine.at(step));
    }
    if (o.progress) o.progress(step + 1, steps, loss.item<double>());
  }

  std::vector<int64_t> samples(static_cast<size_t>(test.size()));
  std::iota(samples.begin(), samples.end(), int64_t{0});
  EmbedOptions look;
  look.augment = o.augment;
  look.dtype = o.dtype;
  look.threads = o.threads;
  encoder.eval();
  const at::NoGradGuard no_grad;
  const Labeled known = known_rows(embed(encoder, test, samples, look, comm), test.labels(), classes, "test");
  const at::Tensor scores = at::linear(known.features, head[0].second.cpu(), head[1].second.cpu());
  return tally(predictions_of(scores, known.labels), known.labels, classes, plan.samples);
}

}  // namespace pal::eval
