// device_step: encoder, batch norm and optimizer on the meta device, which reveals a tensor made on the wrong device;
// and bfloat16 autocast, on the CPU.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/model/backbones.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "core/model/layers.h"
#include "core/model/precision.h"
#include "core/model/state.h"
#include "core/ops/named_tensors.h"
#include "core/optim/optimizer.h"

namespace pal::data {
namespace {

// Some virtual machines announce AMX and trap on it; oneDNN reads this once, at its first product.
const int kWithoutAmx = setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 0);

std::shared_ptr<model::Encoder> small_encoder(const std::string& backbone, comm::Comm& comm) {
  model::ModelSpec spec;
  spec.backbone = config::choice_of(model::kBackbones, backbone);
  spec.convnet_widths = {8, 16};
  spec.projector = {32, 16};
  spec.channels = 3;
  auto encoder = model::make_encoder(spec, comm);
  encoder->train();
  return encoder;
}

// The tensors that the layers compute with, on meta (Module::to cannot bring them there). Returns the parameters.
ops::NamedTensors to_meta(torch::nn::Module& module) {
  ops::NamedTensors parameters;
  const auto move = [&](at::Tensor& t) {
    const bool learns = t.requires_grad();
    t = at::empty_like(t, at::TensorOptions(at::kMeta)).requires_grad_(learns);
    if (learns) parameters.emplace_back(std::to_string(parameters.size()), t);
  };
  module.apply([&](torch::nn::Module& m) {
    if (auto* linear = dynamic_cast<model::Linear*>(&m)) move(linear->weight);
    if (auto* norm = dynamic_cast<model::BatchNorm*>(&m)) {
      for (at::Tensor* t :
           {&norm->weight, &norm->bias, &norm->running_mean, &norm->running_var, &norm->num_batches_tracked})
        move(*t);
    }
  });
  return parameters;
}

// LibTorch's convolutions do not run on meta: batch norm of images, then a projector.
TEST(DeviceStep, LayersAndOptimizerStayWhereTheyAre) {
  const auto comm = comm::make_local_comm();
  const auto meta = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  model::BatchNormOptions options;
  options.comm = comm.get();
  for (const char* kind : {"sgd", "lars", "adamw"}) {
    SCOPED_TRACE(kind);
    model::BatchNorm norm(6, options);
    model::Projector projector(6, {16, 8}, options);
    ops::NamedTensors parameters = to_meta(norm);
    for (const auto& named : to_meta(projector)) parameters.emplace_back("projector." + named.first, named.second);
    ASSERT_EQ(parameters.size(), 6u);
    optim::OptimSpec spec;
    spec.kind = config::choice_of(optim::kOptimizers, kind);
    const auto optimizer = optim::make_optimizer(spec, parameters);
    for (int step = 0; step < 2; ++step) {
      const at::Tensor images = at::empty({4, 6, 5, 5}, meta);
      const at::Tensor z = projector.forward(
          model::global_average(norm.forward(images, model::Activation::relu, at::empty_like(images))));
      ASSERT_TRUE(z.is_meta());
      z.backward(at::empty_like(z));
      norm.commit();
      model::commit_batch_norm(projector);
      for (const auto& [name, p] : parameters) ASSERT_TRUE(p.grad().defined() && p.grad().is_meta()) << name;
      ASSERT_NO_THROW(optimizer->step(0.1));
    }
    for (const auto& [name, t] : optimizer->state()) EXPECT_EQ(t.is_meta(), name != "steps") << name;
    norm.eval();
    EXPECT_TRUE(norm.forward(at::empty({1, 6, 2, 2}, meta)).is_meta());
  }
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.flatten().to(at::kDouble), y = b.flatten().to(at::kDouble);
  return (x.dot(y) / (x.norm() * y.norm())).item<double>();
}

TEST(Autocast, RoundsProductsAndLeavesTheRest) {
  ASSERT_EQ(kWithoutAmx, 0);
  at::manual_seed(3);
  const auto comm = comm::make_local_comm();
  for (const char* backbone : {"convnet", "resnet18"}) {
    SCOPED_TRACE(backbone);
    const auto full = small_encoder(backbone, *comm), half = small_encoder(backbone, *comm);  // of one seed
    const at::Tensor images = at::randn({16, 3, 16, 16});
    const at::Tensor z = full->outputs(images);
    at::Tensor rounded;
    {
      const model::Autocast autocast(model::Precision::bf16, at::kCPU);
      rounded = half->outputs(images);
      EXPECT_EQ(rounded.scalar_type(), at::kBFloat16);
      rounded = rounded.to(at::kFloat);
    }
    EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
    EXPECT_FALSE(at::equal(z, rounded));
    EXPECT_GT(cosine(z, rounded), 0.995);
    const at::Tensor dz = at::randn_like(z);
    z.backward(dz);
    rounded.backward(dz);
    const ops::NamedTensors a = model::trainable(*full), b = model::trainable(*half);
    for (size_t k = 0; k < a.size(); ++k) {
      ASSERT_EQ(b[k].second.grad().scalar_type(), at::kFloat) << b[k].first;
      EXPECT_TRUE(at::isfinite(b[k].second.grad()).all().item<bool>()) << b[k].first;
      EXPECT_EQ(b[k].second.scalar_type(), at::kFloat);
    }
    EXPECT_GT(cosine(a.back().second.grad(), b.back().second.grad()), 0.99) << a.back().first;
    model::commit_batch_norm(*full);
    model::commit_batch_norm(*half);
    for (const auto& named : half->named_buffers()) {
      EXPECT_NE(named.value().scalar_type(), at::kBFloat16) << named.key();
    }
  }
}

// The rounded weights that a scope caches are dropped with it, because the optimizer changes the weights.
TEST(Autocast, SeesWeightsThatChanged) {
  const auto comm = comm::make_local_comm();
  const auto encoder = small_encoder("convnet", *comm);
  encoder->eval();
  const at::Tensor images = at::randn({2, 3, 16, 16});
  const auto outputs = [&] {
    const model::Autocast autocast(model::Precision::bf16, at::kCPU);
    return encoder->outputs(images);
  };
  const at::Tensor before = outputs();
  {
    const at::NoGradGuard no_grad;
    for (const auto& named : model::trainable(*encoder)) at::Tensor(named.second).mul_(1.5);
  }
  EXPECT_FALSE(at::equal(before, outputs()));
}

}  // namespace
}  // namespace pal::data
