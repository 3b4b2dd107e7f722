#include "dist/scale/scale_inputs.h"

#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/data/dataset.h"
#include "core/data/loader/augment_spec.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "kernels/moments.h"

namespace pal::dist {
namespace {

using torch::autograd::Node;

// Bytes that tensors of this thread hold.
struct LiveBytes final : c10::MemoryReportingInfoBase {
  int64_t now = 0;
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override { now += bytes; }
  bool memoryProfilingEnabled() const override { return true; }
};

// The parameter that an input of a node is, seen through views and transposes; null where it is something computed.
const at::TensorImpl* parameter_of(const torch::autograd::Edge& edge) {
  const Node* node = edge.function.get();
  while (node != nullptr) {
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node))
      return leaf->variable.unsafeGetTensorImpl();
    if (node->num_inputs() != 1 || node->next_edges().size() != 1) return nullptr;
    node = node->next_edge(0).function.get();
  }
  return nullptr;
}

// FLOPs of each convolution's and matrix product's weight in the pass behind z: 2 · outputs · inputs of an output.
void add_flops(std::unordered_map<const at::TensorImpl*, double>& flops, const at::Tensor& z, double factor) {
  std::vector<Node*> open = {z.grad_fn().get()};
  std::unordered_set<Node*> seen = {open[0]};
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      const at::TensorImpl* const weight =
          node->next_edges().size() > 1 ? parameter_of(edge) : nullptr;  // a product has two factors
      if (weight != nullptr && weight->dim() > 1) {
        double outputs = 1;
        for (const c10::SymInt& extent : node->input_metadata(0).shape_as_dim_vector())
          outputs *= static_cast<double>(extent.expect_int());
        flops[weight] += factor * 2 * outputs * static_cast<double>(weight->numel() / weight->size(0));
      }
      if (edge.is_valid() && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
    }
  }
}

struct Measured {
  std::unordered_map<const at::TensorImpl*, double> flops;  // of one sample
  double bytes = 0;                                         // float32 that backward needs, of one sample
};

// `live` has seen every tensor of the encoder.
void measure(Measured& out, model::Encoder& encoder, const model::ModelSpec& spec, int64_t side, double count,
             const LiveBytes& live) {
  constexpr int64_t kFew = 2, kMore = 4;  // the difference of two leaves out what does not grow with the batch
  int64_t held[2];
  for (const int64_t images : {kFew, kMore}) {
    const int64_t before = live.now;
    const at::Tensor z = encoder.outputs(at::zeros({images, spec.channels, side, side}, spec.dtype));
    if (images == kFew) add_flops(out.flops, z, count / kFew);
    held[images == kFew ? 0 : 1] = live.now - before;  // while z lives, so does what its backward needs
  }
  out.bytes += count * static_cast<double>(held[1] - held[0]) / (kMore - kFew) * 4 /
               static_cast<double>(c10::elementSize(spec.dtype));
}

LayerCost::Kind kind_of(const at::Tensor& parameter) {
  return parameter.dim() == 4   ? LayerCost::Kind::conv
         : parameter.dim() == 2 ? LayerCost::Kind::matmul
                                : LayerCost::Kind::norm;
}

// The scales of the batch norms: each stands for a reduction of its channels over the ranks.
std::unordered_set<const at::TensorImpl*> batch_norm_scales(model::Encoder& encoder) {
  std::unordered_set<const at::TensorImpl*> out;
  encoder.apply([&](torch::nn::Module& m) {
    if (const auto* norm = dynamic_cast<const model::BatchNorm*>(&m)) out.insert(norm->weight.unsafeGetTensorImpl());
  });
  return out;
}

// The column `cost` of core/config/losses.def.
enum class LossCost {
  moments,     // all-reduce of second moments, or a form of it that fits the shapes better
  covariance,  // all-reduce of second moments
  similarity,  // all-gather of the rows
  local        // a few numbers
};
LossCost cost_of(loss::LossKind kind) {
  switch (kind) {
#define PAL_LOSS(name, cost, target) \
  case loss::LossKind::name:         \
    return LossCost::cost;
#include "core/config/losses.def"
  }
  PAL_ASSERT(false, "a loss that is not in the table");
}

int optimizer_slots(optim::OptimizerKind kind) {
  switch (kind) {
#define PAL_OPTIMIZER(name, slots) \
  case optim::OptimizerKind::name: \
    return slots;
#include "core/config/optimizers.def"
  }
  PAL_ASSERT(false, "an optimizer that is not in the table");
}

}  // namespace

ViewSides view_sides(const setup::RunSpec& run) {
  ViewSides sides{run.augment.size, run.augment.small_views > 0 ? run.augment.small_size : 0, ViewSides::Known::yes};
  if (run.model.backbone == model::BackboneKind::none)
    sides.large = 1;  // a row of features: as many channels as it is wide
  if (sides.large > 0) return sides;
  try {
    sides.large = data::augment_options(run.augment, *data::Dataset::open(run.data.train)).size;
  } catch (const Error&) {
    sides.large = run.model.backbone == model::BackboneKind::convnet || run.model.stem == model::Stem::cifar ? 32 : 224;
    sides.known = ViewSides::Known::assumed;
  }
  return sides;
}

ModelCost measure_model(const setup::RunSpec& run, const ViewSides& sides) {
  const auto live = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
  const auto comm = comm::make_local_comm();
  const model::ModelSpec spec = setup::model_spec(run);
  const auto encoder = model::make_encoder(spec, *comm);
  encoder->train();
  const auto large = static_cast<double>(run.augment.views), small = static_cast<double>(run.augment.small_views);
  Measured measured;
  measure(measured, *encoder, spec, sides.large, large, *live);
  if (sides.small > 0) measure(measured, *encoder, spec, sides.small, small, *live);

  ModelCost cost;
  cost.embedding = encoder->embedding_dims();
  cost.activation_bytes = measured.bytes;
  cost.input_bytes =
      4.0 * static_cast<double>(spec.channels) *
      (large * static_cast<double>(sides.large * sides.large) + small * static_cast<double>(sides.small * sides.small));
  const auto scales = batch_norm_scales(*encoder);
  for (const auto& [name, parameter] : model::trainable(*encoder)) {
    const at::TensorImpl* const key = parameter.unsafeGetTensorImpl();
    const auto found = measured.flops.find(key);
    cost.layers.push_back({name, parameter.numel(), found == measured.flops.end() ? 0 : found->second,
                           kind_of(parameter), scales.count(key) > 0 ? parameter.numel() : 0});
  }
  for (const auto& [name, tensor] : model::model_state(*encoder)) cost.buffers += tensor.numel();
  cost.buffers -= cost.parameters();
  return cost;
}

std::vector<LossForm> loss_forms(const setup::RunSpec& run, const ModelCost& model, int64_t samples) {
  switch (cost_of(run.loss.kind)) {
    case LossCost::local:
      return {LossForm::local};
    case LossCost::similarity:
      return {LossForm::similarity};
    case LossCost::covariance:
      return {LossForm::covariance};
    case LossCost::moments:
      break;
  }
  const int64_t rows = samples * (run.loss.moments == loss::Moments::per_view ? 1 : run.augment.total_views());
  const bool covariance = kernels::covariance_form_wins(
      rows, model.embedding, static_cast<int64_t>(c10::elementSize(run.train.dtype)), sizeof(double));
  if (covariance) return {LossForm::covariance, LossForm::gram, LossForm::official};
  return {LossForm::gram, LossForm::covariance, LossForm::official};
}

Workload step_workload(const setup::RunSpec& run, const ModelCost& model) {
  Workload work;
  work.samples = run.train.global_batch;
  const int64_t views = run.augment.total_views();
  const int width = static_cast<int>(c10::elementSize(run.train.dtype));
  const bool per_view = cost_of(run.loss.kind) == LossCost::moments && run.loss.moments == loss::Moments::per_view;
  work.loss = {loss_forms(run, model, work.samples)[0], per_view ? views : 1, views, model.embedding, width, 8};
  work.precision = run.train.precision;
  work.gradient_bytes = run.train.grad_dtype == setup::GradDtype::bfloat16 && width == 4 ? 2 : width;
  work.bucket_bytes = run.train.bucket_mb * (1 << 20);
  const model::BatchNormScope norm = run.model.batch_norm;
  work.norm = norm == model::BatchNormScope::off    ? Workload::Norm::off
              : norm == model::BatchNormScope::node ? Workload::Norm::node
                                                    : Workload::Norm::global;
  work.micro_batches = static_cast<int>(run.train.micro_batches);
  const int passes = run.augment.small_views > 0 ? 2 : 1;  // views of a size together
  work.forwards = work.micro_batches * static_cast<int>(run.train.views == setup::ViewPasses::joint ? passes : views);
  work.optimizer_slots = optimizer_slots(run.optim.kind);
  work.state_bytes = width;
  return work;
}

}  // namespace pal::dist
