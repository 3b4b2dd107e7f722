// scale_inputs: the cost taken from a model, against known networks; bytes of the loss against counted ones.
#include "dist/scale/scale_inputs.h"

#include <gtest/gtest.h>

#include "core/comm/comm.h"
#include "core/comm/rank_slices.h"
#include "core/loss/vicreg.h"
#include "dist/scale/scale_model.h"
#include "kernels/moments.h"
#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

setup::RunSpec spec_with(std::vector<std::string> settings) {
  settings.insert(settings.end(), {"train.steps=10", "optim.lr=0.1"});
  return spec_of(settings);
}

TEST(ScaleInputs, ResNet50HasTheKnownCost) {
  if (test_world().size() > 1) GTEST_SKIP() << "the cost does not depend on the ranks";
  const setup::RunSpec c =
      spec_with({"model.backbone=resnet50", "model.stem=imagenet", "model.projector=[64]", "data.size=224"});
  const ModelCost model = measure_model(c, view_sides(c)), known = bottleneck_resnet({3, 4, 6, 3});
  // Without the classifier of 2,048 × 1,000 and its bias; with a projector of 2,048 × 64. Two views.
  const double head = 2.0 * 2048 * 64, classifier = 2.0 * 2048 * 1000;
  EXPECT_EQ(model.parameters(), known.parameters() - 2049000 + 2048 * 64);
  EXPECT_NEAR(model.flops(), 2 * (known.flops() - classifier + head), 1e-9 * known.flops());
  EXPECT_EQ(model.embedding, 64);
  int64_t norms = 0;
  for (const LayerCost& layer : model.layers) norms += layer.statistics > 0 ? 1 : 0;
  EXPECT_EQ(norms, 53);
  // Backward keeps about 11.1 M outputs of convolutions and as many of batch norms, per view: 180 MB in float32.
  EXPECT_GT(model.activation_bytes, 2 * 80e6);
  EXPECT_LT(model.activation_bytes, 2 * 130e6);
}

TEST(ScaleInputs, ViewsAndWorkload) {
  const setup::RunSpec c =
      spec_with({"model.backbone=convnet", "model.widths=[4,8]", "model.projector=[16,8]", "data.size=16",
                 "augment.views=3", "train.views=separate", "augment.small_views=2", "augment.small_size=8",
                 "optim.kind=adamw", "train.grad_dtype=bfloat16", "train.global_batch=64"});
  const ModelCost model = measure_model(c, view_sides(c));
  const auto image = [](double side) {
    return 2 * (side * side * 4 * 27 + side * side / 4 * 8 * 36 + 8 * 16 + 16 * 8);
  };
  EXPECT_NEAR(model.flops(), 3 * image(16) + 2 * image(8), 1e-6);
  EXPECT_EQ(model.parameters(), 4 * 27 + 8 + 8 * 36 + 16 + 8 * 16 + 32 + 16 * 8);
  const Workload work = step_workload(c, model);
  EXPECT_EQ(work.forwards, 5);
  EXPECT_EQ(work.optimizer_slots, 2);
  EXPECT_EQ(work.gradient_bytes, 2);
  EXPECT_EQ(work.loss.groups, 5);
  EXPECT_EQ(work.loss.form, LossForm::covariance);  // 64 rows of a view · 4 bytes > 8 · 8
}

TEST(ScaleInputs, WithoutDataTheSideIsAssumed) {
  const setup::RunSpec c = spec_with({"data.train=nowhere.h5", "model.stem=imagenet"});
  EXPECT_EQ(view_sides(c).large, 224);
  EXPECT_EQ(view_sides(c).known, ViewSides::Known::assumed);
}

// The bytes that the real criterion sends are those of the model, for both forms.
TEST(ScaleInputs, LossBytesAreTheCountedOnes) {
  if (test_world().size() > 1) GTEST_SKIP() << "ranks are threads here";
  for (const int64_t dims : {8, 96}) {  // the covariance form, and the Gram form
    const int64_t n = 30;
    const graph::BatchGraph graph = loss::test_graphs(n, 2, graph::Signs::positive)[0].second;  // ssl
    const at::Tensor z = loss::random_rows(2 * n, dims, 5).to(at::kFloat);
    LossShape shape{
        kernels::covariance_form_wins(n, dims, 4, 8) ? LossForm::covariance : LossForm::gram, 2, 2, dims, 4, 8};
    double expected = 0;
    for (const Exchange& e : loss_exchanges(shape, n)) expected += e.bytes;
    const std::vector<int64_t> begin = comm::rank_slices(n, 3);
    comm::run_ranks(3, [&](comm::Comm& comm) {
      const loss::Batch batch = loss::slice_of(graph, begin, comm.rank());
      const at::Tensor own = z.view({2, n, dims})
                                 .narrow(1, batch.begin, batch.local_positions())
                                 .reshape({batch.local_rows(), dims})
                                 .contiguous();
      comm::CountingComm counted(comm);
      loss::make_vicreg({})(own, batch, counted);
      EXPECT_EQ(static_cast<double>(counted.bytes()), expected) << "width " << dims;
    });
    EXPECT_EQ(shape.form, dims == 8 ? LossForm::covariance : LossForm::gram);
  }
}

}  // namespace
}  // namespace pal::dist
