// vit: stochastic depth depends on the rows alone; init_weights: names of published weights, and files that do not
// match. tests/launch/weights_test.py compares the outputs with timm's and loads published files.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/io/safetensors.h"
#include "core/model/backbones.h"
#include "core/model/encoder.h"
#include "core/model/init_weights.h"
#include "core/model/state.h"
#include "core/ops/named_tensors.h"
#include "tests/core/data/data_files.h"

namespace pal::model {
namespace {

ViTSpec small_vit(double drop_path) {
  ViTSpec spec;
  spec.width = 24;
  spec.heads = 3;
  spec.depth = 4;
  spec.patch = 4;
  spec.image = 12;
  spec.drop_path = drop_path;
  spec.seed = 5;
  spec.dtype = at::kDouble;
  return spec;
}

std::shared_ptr<Backbone> drawn_vit(double drop_path) {
  auto vit = make_vit(small_vit(drop_path));
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  for (at::Tensor p : vit->parameters()) p.copy_(at::randn(p.sizes(), p.options()) * 0.2 + (p.dim() == 1 ? 0.5 : 0.0));
  return vit;
}

TEST(ViT, StochasticDepthDependsOnTheRowAlone) {
  const auto vit = drawn_vit(0.5);
  at::manual_seed(7);
  const at::Tensor images = at::randn({16, 3, 12, 12}, at::kDouble);
  vit->train();
  const at::Tensor all = vit->forward(images);
  EXPECT_TRUE(at::equal(vit->forward(images), all));  // no state
  const at::Tensor order = at::randperm(16);
  EXPECT_TRUE(at::allclose(vit->forward(images.index_select(0, order)), all.index_select(0, order), 0,
                           1e-12));  // any order and split
  EXPECT_TRUE(at::allclose(vit->forward(images.narrow(0, 5, 3)), all.narrow(0, 5, 3), 0, 1e-12));
  vit->eval();
  const at::Tensor whole = vit->forward(images);
  const at::Tensor moved = (whole - all).abs().amax(1) > 1e-9;
  EXPECT_GT(moved.sum().item<int64_t>(), 8);  // most rows lose a branch of four blocks
  // The mean over many rows is preserved, because kept branches are scaled up.
  EXPECT_FALSE(at::allclose(drawn_vit(0)->forward(images), all));
}

TEST(ViT, BranchesAreDroppedAtTheirRate) {
  // With weights of the branches that add a constant, the class token counts the branches kept.
  ViTSpec spec = small_vit(0.6);
  spec.depth = 2;
  auto vit = make_vit(spec);
  const at::NoGradGuard no_grad;
  for (const auto& p : vit->named_parameters()) at::Tensor(p.value()).zero_();
  for (const auto& p : vit->named_parameters()) {
    if (p.key() == "blocks.1.mlp.fc2.bias") at::Tensor(p.value())[0] = 1.0;
    if (p.key() == "norm.bias") at::Tensor(p.value()).zero_();
    if (p.key() == "norm.weight") at::Tensor(p.value()).fill_(1.0);
  }
  vit->train();
  const int64_t n = 2000;
  const at::Tensor out = vit->forward(at::randn({n, 3, 12, 12}, at::kDouble)).select(1, 0);
  const double kept = out.gt(0.5).to(at::kDouble).mean().item<double>();  // after the norm a kept row is far from 0
  EXPECT_NEAR(kept, 0.4, 0.04);
}

TEST(ViT, OtherSizesTakeResampledPositions) {
  const auto vit = drawn_vit(0);
  vit->eval();
  EXPECT_EQ(vit->forward(at::randn({2, 3, 8, 8}, at::kDouble)).sizes(), at::IntArrayRef({2, 24}));
  EXPECT_EQ(vit->forward(at::randn({2, 1, 12, 12}, at::kDouble)).sizes(), at::IntArrayRef({2, 24}));  // gray
  EXPECT_TRUE(contains(error_of(Exit::usage,
                                [&] {
                                  vit->forward(at::randn({2, 3, 10, 12}, at::kDouble));
                                }),
                       "model.patch=4"));
  const at::Tensor flat = at::cat({at::full({1, 1, 2}, 5.0), at::full({1, 9, 2}, 3.0)}, 1).to(at::kDouble);
  const at::Tensor more = resample_positions(flat, 5, 4);
  EXPECT_EQ(more.sizes(), at::IntArrayRef({1, 21, 2}));
  EXPECT_TRUE(at::allclose(more.narrow(1, 1, 20), at::full({1, 20, 2}, 3.0, at::kDouble)));
  EXPECT_EQ(more[0][0][0].item<double>(), 5.0);
}

TEST(InitWeights, NamesOfTheTable) {
  EXPECT_EQ(our_name("encoder.layers.encoder_layer_3.self_attention.in_proj_weight"), "blocks.3.attn.qkv.weight");
  EXPECT_EQ(our_name("encoder.layers.encoder_layer_11.mlp.3.bias"), "blocks.11.mlp.fc2.bias");
  EXPECT_EQ(our_name("encoder.ln.weight"), "norm.weight");
  EXPECT_EQ(our_name("layer2.0.shortcut.0.weight"), "layer2.0.downsample.0.weight");
  EXPECT_EQ(our_name("module.backbone.layer2.0.downsample.0.weight"), "module.backbone.layer2.0.downsample.0.weight");
}

TEST(InitWeights, PrefixesTeachersAndUnusedTensors) {
  const TestFolder folder;
  auto comm = comm::make_local_comm();
  ModelSpec spec;
  spec.convnet_widths = {4, 6};
  spec.projector = {5};
  const auto source = make_encoder(spec, *comm);
  ops::NamedTensors file;
  for (const auto& [name, t] : model_state(*source)) {
    if (!name.starts_with("backbone.")) continue;
    const std::string own = name.substr(9);
    file.emplace_back("student.module." + own, at::zeros_like(t));
    file.emplace_back("teacher.module." + own, t);
  }
  file.emplace_back("teacher.head.weight", at::ones({3}));
  io::write_safetensors(folder / "dino.safetensors", file, {});
  spec.seed = 9;
  const auto encoder = make_encoder(spec, *comm);
  const InitReport report = init_backbone(*encoder, folder / "dino.safetensors");
  EXPECT_EQ(report.prefix, "teacher.module.");
  EXPECT_EQ(report.taken, 12);  // two blocks: weight, and five of the norm
  EXPECT_EQ(report.unused.size(), 13u);
  EXPECT_EQ(report.unused.back(), "teacher.head.weight");
  for (const auto& [name, t] : model_state(*source)) {
    if (!name.starts_with("backbone.")) continue;
    for (const auto& [other, u] : model_state(*encoder)) {
      if (other != name) continue;
      EXPECT_TRUE(at::equal(t, u)) << name;
    }
  }
}

TEST(InitWeights, AFileOfMoreLayersOrOtherPartsIsRefused) {
  const TestFolder folder;
  auto comm = comm::make_local_comm();
  ModelSpec deep, flat;
  deep.convnet_widths = {4, 6, 6};
  flat.convnet_widths = {4, 6};
  deep.projector = flat.projector = {5};
  ops::NamedTensors file;
  for (const auto& [name, t] : model_state(*make_encoder(deep, *comm))) file.emplace_back("module." + name, t);
  io::write_safetensors(folder / "deep.safetensors", file, {});
  const auto encoder = make_encoder(flat, *comm);
  const std::string sentence = error_of(Exit::data, [&] { init_backbone(*encoder, folder / "deep.safetensors"); });
  EXPECT_TRUE(contains(sentence, "blocks.2.bn.bias is not in this backbone, ")) << sentence;
  EXPECT_FALSE(contains(sentence, "projector")) << sentence;  // heads are ignored
  ops::NamedTensors tokens;
  for (const auto& [name, t] : model_state(*make_encoder(flat, *comm))) tokens.emplace_back(name, t);
  tokens.emplace_back("backbone.register_tokens", at::zeros({1, 4, 6}));
  io::write_safetensors(folder / "tokens.safetensors", tokens, {});
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { init_backbone(*encoder, folder / "tokens.safetensors"); }),
                       "register_tokens is not in this backbone"));
  tokens.back().first = "backbone.mask_token";  // used in training only
  io::write_safetensors(folder / "mask.safetensors", tokens, {});
  const std::string text = init_text(init_backbone(*encoder, folder / "mask.safetensors"));
  EXPECT_TRUE(contains(text, "12 tensors under backbone., 2 ignored (backbone.mask_token, projector.0.weight)"))
      << text;
}

TEST(InitWeights, AFileThatDoesNotMatchChangesNothing) {
  const TestFolder folder;
  auto comm = comm::make_local_comm();
  ModelSpec spec;
  spec.convnet_widths = {4, 6};
  const auto encoder = make_encoder(spec, *comm);
  ops::NamedTensors file;
  for (const auto& [name, t] : model_state(*encoder)) {
    if (name == "backbone.blocks.1.bn.bias") continue;  // missing
    file.emplace_back(name, name == "backbone.blocks.1.conv.weight" ? at::zeros({6, 4, 1, 1})
                                                                    : at::zeros_like(t));  // of another shape
  }
  io::write_safetensors(folder / "w.safetensors", file, {});
  const at::Tensor before = model_state(*encoder)[0].second.clone();
  const std::string sentence = error_of(Exit::data, [&] { init_backbone(*encoder, folder / "w.safetensors"); });
  EXPECT_TRUE(
      contains(sentence, "blocks.1.conv.weight has shape (6, 4, 1, 1), not (6, 4, 3, 3), blocks.1.bn.bias is missing"))
      << sentence;
  EXPECT_TRUE(at::equal(model_state(*encoder)[0].second, before));
}

}  // namespace
}  // namespace pal::model
