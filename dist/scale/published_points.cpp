#include "dist/scale/cluster.h"
#include "dist/scale/scale_model.h"

namespace pal::dist {
namespace {

// Layers of an image, by the side of what they read.
class Builder {
 public:
  explicit Builder(ModelCost& model) : model_(model) {}

  void conv(int64_t in, int64_t out, int64_t kernel, int64_t side_out,
            int64_t extra) {  // extra: a bias, or batch norm's two
    const auto weights = static_cast<double>(in * out * kernel * kernel);
    model_.layers.push_back({"", in * out * kernel * kernel + extra * out,
                             2 * weights * static_cast<double>(side_out * side_out), LayerCost::Kind::conv, 0});
  }
  void linear(int64_t in, int64_t out) {
    model_.layers.push_back({"", in * out + out, 2.0 * static_cast<double>(in * out), LayerCost::Kind::matmul, 0});
  }

 private:
  ModelCost& model_;
};

// One line of the published tables: throughput of one GPU is an input.
struct Case {
  std::string what, source;
  const char* cluster;
  ModelCost model;
  double samples_per_gpu, one_gpu;  // images/s
  int gpus;
  double published;
  double loader = 0;  // samples/s of a node
  double bucket = 25 << 20;
  Route route = Route::best;
  bool fitted = false;
};

PublishedPoint predict(const Case& c) {
  Cluster cluster = read_cluster(c.cluster);
  cluster.loader_rate = c.loader;
  Workload work;
  work.samples = static_cast<int64_t>(c.samples_per_gpu * c.gpus);
  work.loss = {LossForm::local, 1, 1, 1, 4, 8};
  work.norm = Workload::Norm::off;
  work.measured_sample_seconds = 1 / c.one_gpu;
  work.bucket_bytes = c.bucket;
  work.route = c.route;
  cluster.memory_rate = 1e18;  // the optimizer is in the measured time of one GPU
  return {c.what, c.source, c.gpus, c.published, predict_step(c.model, work, cluster, c.gpus).efficiency, c.fitted};
}

}  // namespace

ModelCost bottleneck_resnet(const std::vector<int>& blocks) {
  ModelCost model;
  Builder b(model);
  b.conv(3, 64, 7, 112, 2);
  int64_t in = 64, side = 56;
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int k = 0; k < blocks[stage]; ++k) {
      const int64_t before = side;
      if (k == 0 && stage > 0) side /= 2;  // in the 3×3
      b.conv(in, width, 1, before, 2);
      b.conv(width, width, 3, side, 2);
      b.conv(width, 4 * width, 1, side, 2);
      if (k == 0) b.conv(in, 4 * width, 1, side, 2);
      in = 4 * width;
    }
  }
  b.linear(in, 1000);
  return model;
}

ModelCost vgg16() {
  ModelCost model;
  Builder b(model);
  int64_t in = 3, side = 224;
  const std::vector<std::vector<int64_t>> stages = {
      {64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
  for (const auto& stage : stages) {
    for (const int64_t out : stage) {
      b.conv(in, out, 3, side, 1);
      in = out;
    }
    side /= 2;
  }
  b.linear(512 * 7 * 7, 4096);
  b.linear(4096, 4096);
  b.linear(4096, 1000);
  return model;
}

std::vector<PublishedPoint> published_points() {
  const ModelCost resnet50 = bottleneck_resnet({3, 4, 6, 3}), resnet101 = bottleneck_resnet({3, 4, 23, 3});
  const std::string nvidia = "NVIDIA DeepLearningExamples, ResNet-50 v1.5, DGX A100 80GB",
                    horovod = "Horovod, docs/benchmarks.rst";
  // One node's loader: MXNet's 8 GPUs in mixed precision ran at 16,925 images/s, and that is taken as the limit of
  // the loader.
  constexpr double kLoader = 16925;
  constexpr double kFusion = 64 << 20;  // Horovod's tensor fusion
  // ResNet-101 on one P100 is between TensorFlow's ResNet-50 (219 images/s) and ResNet-152 (91.8), by FLOPs.
  const double flops[] = {resnet50.flops(), resnet101.flops(), bottleneck_resnet({3, 8, 36, 3}).flops()};
  const double resnet101_rate =
      1 / (1 / 219.0 + (1 / 91.8 - 1 / 219.0) * (flops[1] - flops[0]) / (flops[2] - flops[0]));
  const std::vector<Case> cases = {
      {"MXNet, mixed precision", nvidia + ", MXNet", "a100-8", resnet50, 256, 2180, 8, 7.76 / 8, kLoader, 25 << 20,
       Route::best, true},
      {"PyTorch, mixed precision", nvidia + ", PyTorch", "a100-8", resnet50, 256, 2470, 8, 6.72 / 8, kLoader},
      {"PyTorch, TF32", nvidia + ", PyTorch", "a100-8", resnet50, 256, 938, 8, 7.72 / 8, kLoader},
      {"MXNet, TF32", nvidia + ", MXNet", "a100-8", resnet50, 256, 1022, 8, 7.82 / 8, kLoader},
      {"VGG-16, TensorFlow", horovod, "p100-4", vgg16(), 64, 154, 512, 0.68, 0, kFusion, Route::flat_ring, true},
      {"ResNet-101, TensorFlow", horovod, "p100-4", resnet101, 64, resnet101_rate, 512, 0.90, 0, kFusion,
       Route::flat_ring},
  };
  std::vector<PublishedPoint> points;
  for (const Case& c : cases) points.push_back(predict(c));
  return points;
}

}  // namespace pal::dist
