// invariance: one step on W ranks equals the same step on one rank: value, terms, gradient of every parameter, for each
// loss × graph × moments × views, in float64 and float32, with a batch that is not a multiple of three ranks.
//
// Every rank also computes the one-rank step by itself, on the whole batch, and compares.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/comm/rank_slices.h"
#include "core/graph/store.h"
#include "core/loss/objective.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "dist/train/grad_sync.h"
#include "kernels/base/philox.h"
#include "tests/core/spec_of.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

constexpr int64_t kBatch = 14, kSide = 8, kSamples = 40;

struct Case {
  std::string name;
  std::vector<std::string> settings;
  graph::GraphKind graph;
  int32_t views;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [graph, graph_name] : {std::pair{graph::GraphKind::ssl, "ssl"},
                                          {graph::GraphKind::supervised, "supervised"},
                                          {graph::GraphKind::mixed, "mixed"}}) {
    for (int32_t views : {2, 3}) {
      const std::string tail = fmt::format("_{}_{}views", graph_name, views);
      all.push_back({"vicreg_per_view" + tail, {"loss.kind=vicreg", "loss.moments=per_view"}, graph, views});
      all.push_back({"vicreg_pooled" + tail, {"loss.kind=vicreg", "loss.moments=pooled"}, graph, views});
      all.push_back({"vic2" + tail, {"loss.kind=vic2"}, graph, views});
    }
  }
  // The others, on graphs whose classes lie on several ranks.
  for (const auto& [graph, graph_name] :
       {std::pair{graph::GraphKind::ssl, "ssl"}, {graph::GraphKind::mixed, "mixed"}}) {
    for (const auto& [name, settings] : std::vector<std::pair<std::string, std::vector<std::string>>>{
             {"scl", {"loss.kind=scl"}},
             {"simclr", {"loss.kind=simclr", "loss.temperature=0.5"}},
             {"barlow_cross", {"loss.kind=barlow"}},
             {"barlow_graph", {"loss.kind=barlow", "loss.barlow=graph"}},
             {"sampled_any", {"loss.kind=sampled_vic2", "loss.pairs=60"}},
             {"sampled_halves_printed",
              {"loss.kind=sampled_vic2", "loss.pairs=60", "loss.draw=halves", "loss.form=printed"}},
             {"nnclr",
              {"loss.kind=nnclr", "loss.queue=20", "loss.temperature=0.5", "model.predictor=[10, 7]",
               "model.projector=[12, 7]"}},
             {"mse", {"loss.kind=mse", "graph.kind=mixed"}},
             {"cross_entropy", {"loss.kind=cross_entropy", "graph.kind=mixed"}}}) {
      all.push_back({fmt::format("{}_{}", name, graph_name), settings, graph, 3});
    }
  }
  return all;
}

// Images of the global batch, view-major: a function of the counters only.
at::Tensor images(int32_t views, int64_t begin, int64_t end, at::ScalarType type) {
  at::Tensor x = at::empty({views * (end - begin), 1, kSide, kSide}, at::kDouble);
  double* p = x.data_ptr<double>();
  for (int32_t v = 0; v < views; ++v) {
    for (int64_t i = begin; i < end; ++i) {
      Random random(11, Purpose::noise, 0, static_cast<uint64_t>(i), static_cast<uint32_t>(v));
      for (int64_t k = 0; k < kSide * kSide; ++k) *p++ = random.normal();
    }
  }
  return x.to(type);
}

struct Outcome {
  loss::LossResult loss;
  at::Tensor gradient;  // of all parameters, flat, float64
};

// Batch norm uses `comm` during backward while the buckets are summed on `bulk`.
Outcome one_step(const Case& c, at::ScalarType type, comm::Comm& comm, comm::Comm& bulk) {
  std::vector<std::string> settings = c.settings;
  settings.insert(settings.end(), {"train.steps=1", "optim.lr=0.1"});
  settings.push_back(type == at::kDouble ? "train.dtype=float64" : "train.dtype=float32");
  const setup::RunSpec run = spec_of(settings);
  model::ModelSpec spec;
  spec.backbone = model::BackboneKind::convnet;
  spec.convnet_widths = {6, 9};
  spec.projector = {12, 7};
  spec.predictor = run.model.predictor;
  spec.channels = 1;
  spec.seed = 5;
  spec.dtype = type;
  auto encoder = model::make_encoder(spec, comm);
  encoder->train();
  loss::Objective objective(run.loss, encoder->embedding_dims());
  GradSync grads(model::trainable(*encoder), bulk, {/*bucket_bytes=*/2048});

  graph::GraphStore store(kSamples);
  std::vector<int64_t> labels(kSamples, -1);
  for (int64_t s = 0; s < kSamples; ++s) labels[s] = s % 3 == 2 ? -1 : s % 4;
  store.set_labels(labels);
  loss::Batch batch;
  for (int64_t p = 0; p < kBatch; ++p) batch.samples.push_back((7 * p + 3) % kSamples);
  batch.views = c.views;
  batch.rank_begin = comm::rank_slices(kBatch, comm.size());
  batch.begin = batch.rank_begin[comm.rank()];
  batch.end = batch.rank_begin[comm.rank() + 1];
  batch.graph = graph::build_batch_graph(store, c.graph, 0.3, batch.samples, c.views);

  for (int64_t sample : batch.samples) batch.labels.push_back(store.label(sample));
  objective.prepare(batch, 0);

  const at::Tensor z = encoder->outputs(images(c.views, batch.begin, batch.end, type));
  Outcome outcome;
  outcome.loss = objective(z.detach().contiguous(), batch, comm);
  grads.begin();
  grads.release();
  z.backward(outcome.loss.dz);
  grads.sum();
  std::vector<at::Tensor> flat;
  for (const auto& p : encoder->parameters()) flat.push_back(p.grad().reshape(-1).to(at::kDouble));
  outcome.gradient = at::cat(flat);
  return outcome;
}

class Invariance : public testing::TestWithParam<Case> {};

void compare(const Case& c, at::ScalarType type, double value_tolerance, double gradient_tolerance) {
  auto alone = comm::make_local_comm();
  const Outcome one = one_step(c, type, *alone, *alone);
  const Outcome many = one_step(c, type, test_world().compute(), test_world().gradients());
  const double scale = std::max(1.0, std::abs(one.loss.value));
  EXPECT_NEAR(many.loss.value, one.loss.value, value_tolerance * scale);
  ASSERT_EQ(many.loss.terms.size(), one.loss.terms.size());
  for (size_t k = 0; k < one.loss.terms.size(); ++k) {
    EXPECT_EQ(many.loss.terms[k].first, one.loss.terms[k].first);
    EXPECT_NEAR(many.loss.terms[k].second, one.loss.terms[k].second, value_tolerance * scale)
        << one.loss.terms[k].first;
  }
  const double norm = one.gradient.norm().item<double>();
  EXPECT_GT(norm, 1e-6) << "the gradient is not zero, so that the comparison means something";
  EXPECT_LE((many.gradient - one.gradient).norm().item<double>(), gradient_tolerance * norm);
}

TEST_P(Invariance, Float64) { compare(GetParam(), at::kDouble, 1e-10, 1e-9); }
TEST_P(Invariance, Float32) { compare(GetParam(), at::kFloat, 1e-6, 1e-5); }

INSTANTIATE_TEST_SUITE_P(Cases, Invariance, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pal::dist
