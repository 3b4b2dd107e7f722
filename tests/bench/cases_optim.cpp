// cases_optim: one update of all parameters of ResNet-50 with VICReg's projector, from given gradients.
#include <ATen/core/grad_mode.h>

#include "core/comm/comm.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/ops/named_tensors.h"
#include "core/optim/flat.h"
#include "core/optim/optimizer.h"
#include "tests/bench/cases.h"

namespace pal::bench {
namespace {

constexpr double kRate = 0.05;
constexpr const char* kShown[] = {"backbone.conv1.weight", "backbone.bn1.bias",
                                  "projector.0.weight"};  // compared parameters

model::ModelSpec optim_bench_model(BenchSizes sizes) {
  model::ModelSpec spec;
  spec.backbone = sizes == BenchSizes::full ? model::BackboneKind::resnet50 : model::BackboneKind::resnet18;
  spec.stem = model::Stem::imagenet;
  spec.projector = sizes == BenchSizes::full ? std::vector<int64_t>{2048, 2048, 2048} : std::vector<int64_t>{64};
  return spec;
}

// Parameters and gradients as a training step leaves them: in flat buckets.
struct Ready {
  std::vector<optim::FlatBucket> buckets;
  std::unique_ptr<optim::Optimizer> optimizer;
};

KernelCase optim_case(const std::string& kind, BenchSizes sizes) {
  KernelCase c{
      .name = kind,
      .params = {{"model", config::choice_name(model::kBackbones, optim_bench_model(sizes).backbone)}, {"lr", kRate}}};
  if (kind == "adamw") {
    c.peers = {{"AdamW fused"}, {"AdamW foreach"}};
  } else {
    c.peers = {{"official LARS"}};
  }
  c.inputs = [sizes](const std::string&) {
    const auto comm = comm::make_local_comm();
    ops::NamedTensors all;
    uint64_t stream = 40;
    for (const auto& [name, p] : model::trainable(*model::make_encoder(optim_bench_model(sizes), *comm))) {
      all.emplace_back("p." + name, p.detach().contiguous());
      all.emplace_back("g." + name, normal_tensor(p.sizes().vec(), stream++).mul_(0.01));
    }
    return all;
  };
  c.ours = [kind](const InputTensors& in, int) {
    const at::NoGradGuard no_grad;
    ops::NamedTensors parameters;
    for (const auto& [name, t] : in) {
      if (name.rfind("p.", 0) != 0) continue;
      const auto format = t.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
      parameters.emplace_back(name.substr(2), t.clone(format).requires_grad_());
    }
    auto ready = std::make_shared<Ready>();
    ready->buckets = optim::flatten(parameters, 25 << 20);
    for (optim::FlatBucket& b : ready->buckets) {
      for (size_t k = 0; k < b.parameters.size(); ++k) b.parameters[k].mutable_grad() = b.gradients.views[k];
    }
    for (auto& [name, p] : parameters) p.mutable_grad().copy_(in.at("g." + name));
    optim::OptimSpec spec;
    spec.kind = config::choice_of(optim::kOptimizers, kind);
    spec.weight_decay = 1e-4;
    ready->optimizer = optim::make_optimizer(spec, parameters);
    KernelRun run{[ready] {
                    ready->optimizer->step(kRate);
                    return 0.0;
                  },
                  {}};
    for (const char* name : kShown) {
      for (const auto& [other, p] : parameters) {
        if (other == name) run.outputs.emplace_back(name, p.detach());
      }
    }
    return run;
  };
  return c;
}

}  // namespace

std::vector<KernelCase> optim_bench_cases(BenchSizes sizes) {
  return {optim_case("lars", sizes), optim_case("adamw", sizes)};
}

}  // namespace pal::bench
