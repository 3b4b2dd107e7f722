// model: torchvision's names, shapes and counts; weights by the seed; any split of the images over ranks.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <map>

#include "core/model/backbones.h"
#include "core/model/batch_norm.h"
#include "core/model/encoder.h"
#include "tests/core/comm/thread_comm.h"

namespace pal::model {
namespace {

ModelSpec spec_of(const std::string& backbone, std::vector<int64_t> projector = {}) {
  ModelSpec spec;
  spec.backbone = config::choice_of(kBackbones, backbone);
  spec.projector = std::move(projector);
  spec.convnet_widths = {8, 16};
  return spec;
}

std::map<std::string, std::vector<int64_t>> shapes(const torch::nn::Module& module, const std::string& prefix) {
  std::map<std::string, std::vector<int64_t>> found;
  const auto add = [&](const auto& named) {
    for (const auto& item : named)
      if (item.key().rfind(prefix, 0) == 0) found[item.key().substr(prefix.size())] = item.value().sizes().vec();
  };
  add(module.named_parameters());
  add(module.named_buffers());
  return found;
}

// torchvision's state_dict without fc: batch norms have five entries.
struct Expected {
  std::map<std::string, std::vector<int64_t>> entries;
  void conv(const std::string& name, int64_t out, int64_t in, int64_t k) {
    entries[name + ".weight"] = {out, in, k, k};
  }
  void norm(const std::string& name, int64_t c) {
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) entries[name + part] = {c};
    entries[name + ".num_batches_tracked"] = {};
  }
};

Expected torchvision(const std::vector<int>& depths, int64_t expansion, int64_t stem_kernel) {
  Expected e;
  e.conv("conv1", 64, 3, stem_kernel);
  e.norm("bn1", 64);
  int64_t in = 64;
  for (int stage = 0; stage < 4; ++stage)
    for (int b = 0; b < depths[stage]; ++b) {
      const std::string at = "layer" + std::to_string(stage + 1) + "." + std::to_string(b) + ".";
      const int64_t width = 64 << stage, out = width * expansion;
      if (expansion == 1) {
        e.conv(at + "conv1", width, in, 3);
        e.conv(at + "conv2", width, width, 3);
      } else {
        e.conv(at + "conv1", width, in, 1);
        e.conv(at + "conv2", width, width, 3);
        e.conv(at + "conv3", out, width, 1);
        e.norm(at + "bn3", out);
      }
      e.norm(at + "bn1", width);
      e.norm(at + "bn2", width);
      if (b == 0 && (stage > 0 || in != out)) {
        e.conv(at + "downsample.0", out, in, 1);
        e.norm(at + "downsample.1", out);
      }
      in = out;
    }
  return e;
}

int64_t count(const torch::nn::Module& module) {
  int64_t total = 0;
  for (const at::Tensor& p : module.parameters()) total += p.numel();
  return total;
}

TEST(Model, ResNetsHaveTorchvisionsNamesAndShapes) {
  struct Case {
    int depth;
    Stem stem;
    Expected expected;
    int64_t parameters, dims;
  };
  const Case cases[] = {{18, Stem::imagenet, torchvision({2, 2, 2, 2}, 1, 7), 11176512, 512},
                        {18, Stem::cifar, torchvision({2, 2, 2, 2}, 1, 3), 11168832, 512},
                        {34, Stem::imagenet, torchvision({3, 4, 6, 3}, 1, 7), 21284672, 512},
                        {50, Stem::imagenet, torchvision({3, 4, 6, 3}, 4, 7), 23508032, 2048}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.depth);
    const auto resnet = make_resnet(c.depth, c.stem, 3, {});
    EXPECT_EQ(count(*resnet), c.parameters);
    EXPECT_EQ(resnet->dims(), c.dims);
    EXPECT_EQ(shapes(*resnet, ""), c.expected.entries);
  }
}

TEST(Model, ProjectorHasTheWidthsAskedFor) {
  auto comm = comm::make_local_comm();
  const auto encoder = make_encoder(spec_of("convnet", {12, 10, 6}), *comm);
  Expected e;
  e.entries = {{"0.weight", {12, 16}}, {"3.weight", {10, 12}}, {"6.weight", {6, 10}}};
  e.norm("1", 12);
  e.norm("4", 10);
  EXPECT_EQ(shapes(*encoder, "projector."), e.entries);
  EXPECT_EQ(encoder->embedding_dims(), 6);
  EXPECT_EQ(encoder->forward(at::rand({4, 3, 8, 8})).sizes(), at::IntArrayRef({4, 6}));
  const auto bare = make_encoder(spec_of("convnet"), *comm);
  EXPECT_EQ(bare->embedding_dims(), 16);
  EXPECT_TRUE(shapes(*bare, "projector.").empty());
}

TEST(Model, OutputsHaveTheRightShapes) {
  auto comm = comm::make_local_comm();
  ModelSpec spec = spec_of("resnet50", {32, 8});
  const auto wide = make_encoder(spec, *comm);
  const at::Tensor f = wide->features(at::rand({2, 3, 16, 16}));
  EXPECT_EQ(f.sizes(), at::IntArrayRef({2, 2048}));
  EXPECT_EQ(wide->project(f).sizes(), at::IntArrayRef({2, 8}));
  spec.backbone = BackboneKind::resnet18;
  spec.stem = Stem::imagenet;
  spec.dtype = at::kDouble;
  const at::Tensor z = make_encoder(spec, *comm)->forward(at::rand({3, 3, 32, 32}, at::kDouble));
  EXPECT_EQ(z.sizes(), at::IntArrayRef({3, 8}));
  EXPECT_EQ(z.scalar_type(), at::kDouble);
}

TEST(Model, WeightsComeFromTheSeedWithTorchvisionsDistributions) {
  auto comm = comm::make_local_comm();
  ModelSpec spec = spec_of("convnet", {256, 64});
  spec.convnet_widths = {32, 64, 64};
  const auto a = make_encoder(spec, *comm), b = make_encoder(spec, *comm);
  spec.dtype = at::kDouble;
  const auto wide = make_encoder(spec, *comm);
  spec.seed = 1;
  const auto other = make_encoder(spec, *comm);
  const auto pa = a->named_parameters(), pb = b->named_parameters(), pw = wide->named_parameters(),
             po = other->named_parameters();
  for (const auto& item : pa) {
    SCOPED_TRACE(item.key());
    const at::Tensor w = item.value();
    EXPECT_TRUE(at::equal(w, pb[item.key()]));
    EXPECT_TRUE(at::equal(w, pw[item.key()].to(at::kFloat)));
    if (w.dim() == 1) continue;
    EXPECT_FALSE(at::equal(po[item.key()].to(at::kFloat), w));
    const double expected =
        w.dim() == 4 ? std::sqrt(2. / (w.size(0) * w.size(2) * w.size(3))) : 1 / std::sqrt(3. * w.size(1));
    const double n = static_cast<double>(w.numel());
    EXPECT_NEAR(w.std().item<double>() / expected, 1, 5 / std::sqrt(n));
    EXPECT_NEAR(w.mean().item<double>() / expected, 0, 5 / std::sqrt(n));
    if (w.dim() == 2) {
      EXPECT_LE(w.abs().max().item<double>(), 1 / std::sqrt(w.size(1)));
    }
  }
  EXPECT_FALSE(at::equal(pa["backbone.blocks.1.conv.weight"].slice(1, 0, 16),
                         pa["backbone.blocks.2.conv.weight"].slice(1, 0, 16)));
}

TEST(Model, GrayImagesAreThreeEqualChannels) {
  auto comm = comm::make_local_comm();
  at::manual_seed(1);
  SCOPED_TRACE("seed 1");
  ModelSpec spec = spec_of("convnet", {8, 4});
  spec.dtype = at::kDouble;
  const auto encoder = make_encoder(spec, *comm);
  const at::Tensor gray = at::rand({6, 1, 9, 9}, at::kDouble), dz = at::randn({6, 4}, at::kDouble);
  const auto gradient = [&](const at::Tensor& images) {
    encoder->zero_grad();
    const at::Tensor z = encoder->forward(images);
    z.backward(dz);
    return std::pair(z.detach(), encoder->parameters()[0].grad().clone());
  };
  const auto [z, g] = gradient(gray);
  const auto [z3, g3] = gradient(gray.expand({6, 3, 9, 9}));
  EXPECT_TRUE(at::allclose(z, z3, 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(g, g3, 1e-10, 1e-12));
  EXPECT_THROW(encoder->forward(at::rand({2, 4, 9, 9}, at::kDouble)), Error);
}

// z and the summed gradients of the images split over ranks; a rank may have no image.
TEST(Model, IsTheSameForAnyNumberOfRanks) {
  for (const char* backbone : {"convnet", "resnet18"}) {
    at::manual_seed(2);
    SCOPED_TRACE(testing::Message() << backbone << ", seed 2");
    ModelSpec spec = spec_of(backbone, {8, 4});
    spec.dtype = at::kDouble;
    const at::Tensor images = at::rand({6, 3, 8, 8}, at::kDouble), dz = at::randn({6, 4}, at::kDouble);
    at::Tensor whole_z, whole_g;
    for (const std::vector<int64_t>& cut : {std::vector<int64_t>{0, 6}, {0, 5, 5, 6}}) {
      const int ranks = static_cast<int>(cut.size()) - 1;
      std::vector<at::Tensor> z(ranks), g(ranks);
      comm::run_ranks(ranks, [&](comm::ThreadComm& comm) {
        const int r = comm.rank();
        const auto encoder = make_encoder(spec, comm);
        const at::Tensor out = encoder->forward(images.slice(0, cut[r], cut[r + 1]));
        out.backward(dz.slice(0, cut[r], cut[r + 1]));
        z[r] = out.detach();
        std::vector<at::Tensor> flat;
        for (const at::Tensor& p : encoder->parameters()) flat.push_back(p.grad().reshape({-1}));
        g[r] = at::cat(flat);
      });
      at::Tensor sum = g[0];
      for (int r = 1; r < ranks; ++r) sum = sum + g[r];
      if (ranks == 1) {
        whole_z = z[0];
        whole_g = sum;
      }
      EXPECT_LT((at::cat(z) - whole_z).norm().item<double>(), 1e-10 * whole_z.norm().item<double>());
      EXPECT_LT((sum - whole_g).norm().item<double>(), 1e-9 * whole_g.norm().item<double>());
    }
  }
}

TEST(Model, EvaluationUsesTheCommittedStatistics) {
  auto comm = comm::make_local_comm();
  at::manual_seed(3);
  SCOPED_TRACE("seed 3");
  const auto encoder = make_encoder(spec_of("convnet", {8, 4}), *comm);
  const at::Tensor images = at::rand({16, 1, 8, 8});
  const auto evaluate = [&] {
    encoder->eval();
    at::Tensor z = encoder->forward(images).detach();
    encoder->train();
    return z;
  };
  const at::Tensor before = evaluate();
  encoder->forward(images);
  discard_batch_norm(*encoder);
  EXPECT_TRUE(at::equal(evaluate(), before));
  encoder->forward(images);
  commit_batch_norm(*encoder);
  EXPECT_FALSE(at::allclose(evaluate(), before));
}

TEST(Model, UnknownNamesAndBadWidthsAreRefused) {
  auto comm = comm::make_local_comm();
  EXPECT_THROW(spec_of("resnet19"), Error);
  EXPECT_THROW(config::choice_of(kStems, "oak"), Error);
  ModelSpec spec = spec_of("convnet", {8, 0});
  EXPECT_THROW(make_encoder(spec, *comm), Error);
  spec = spec_of("convnet");
  spec.convnet_widths = {};
  EXPECT_THROW(make_encoder(spec, *comm), Error);
}

}  // namespace
}  // namespace pal::model
