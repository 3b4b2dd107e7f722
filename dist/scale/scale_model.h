// scale_model: predicts a training step on W GPUs: time, exposed communication, memory, loader, checkpoints.
//
// A model, not a measurement: pal help scale has the formulas, their sources and what they leave out.
// Math: compute = 3 · FLOPs / (peak · efficiency), a third of it forward, not below a kernel's least time per layer.
//   Batch norm's all-reduces (forward and backward) and the loss's collectives are fully exposed. Gradients leave in
//   buckets as backward reaches them, one after another; exposed is what is left when backward ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/precision.h"
#include "dist/scale/collective_cost.h"

namespace pal::dist {

// What a GPU reaches: a peak, and the shares of it that convolutions and matrix products get.
struct GpuRate {
  double peak = 1;  // FLOP/s
  double conv = 1, matmul = 1;
};

struct Cluster {
  std::string name, gpu;
  Fabric fabric;
  GpuRate full, bf16;
  double memory_bytes = 0, memory_rate = 1;  // of a GPU; bytes, bytes/s
  double kernel_seconds = 0;                 // least time of a layer, forward
  double context_bytes = 0;                  // what the libraries take of a GPU
  double loader_rate = 0;                    // samples/s that a node can load; 0: no limit
  double copy_rate = 1;                      // bytes/s of a GPU's state to the host
  double storage_rate = 1;                   // bytes/s that a node writes to the shared file system
  double node_mtbf = 1;                      // s between failures of one node
  double restart_seconds = 0;                // from a failure to the next step
};

// A parameter in the order of the forward pass, with what its layer costs.
struct LayerCost {
  std::string name;
  int64_t parameters = 0;
  double flops = 0;  // forward, of one sample (all its views); 0: batch norm's
  enum class Kind { conv, matmul, norm } kind = Kind::conv;
  int64_t statistics = 0;  // channels that batch norm reduces; 0: none
};
struct ModelCost {
  std::vector<LayerCost> layers;
  double activation_bytes = 0;  // float32 that backward needs, of one sample
  double input_bytes = 0;       // float32 images of one sample
  int64_t embedding = 0;        // D
  int64_t buffers = 0;          // numbers beside the parameters (running statistics)

  int64_t parameters() const;
  double flops() const;  // forward, of one sample
};

// How the variance-covariance terms (or what stands in their place) cross the ranks.
enum class LossForm {
  official,    // VICReg's published code: all-gather of Z, each GPU does all rows, all-reduce of the gathered gradient
  covariance,  // all-reduce of the second moment
  gram,        // all-gather of Z, own rows only
  similarity,  // SimCLR: all-gather of Z and two numbers per row
  local        // nothing but a few numbers
};
const char* loss_form_name(LossForm form);

struct LossShape {
  LossForm form = LossForm::covariance;
  int64_t groups = 2;  // whose moments are taken apart (views)
  int64_t views = 2;
  int64_t dims = 1;  // D
  int z_bytes = 4, statistic_bytes = 8;
};
struct Exchange {
  Collective collective;
  double bytes = 0;
};
// What the loss sends in a step with `samples` samples in all.
std::vector<Exchange> loss_exchanges(const LossShape& loss, int64_t samples);

struct Workload {
  int64_t samples = 256;  // global batch
  LossShape loss;
  model::Precision precision = model::Precision::full;
  double measured_sample_seconds = 0;  // one GPU's time for a sample, where it is known; 0: from the FLOPs
  double gradient_bytes = 4;           // of one number on the wire
  double bucket_bytes = 25 << 20;
  enum class Norm { global, node, off } norm = Norm::global;
  int forwards = 1;  // passes whose batch norms reduce apart (views, micro-batches)
  int micro_batches = 1;
  int optimizer_slots = 1;  // numbers kept per parameter
  int state_bytes = 4;      // of a weight
  Route route = Route::best;
};

struct StepCost {
  int gpus = 1, nodes = 1;
  double samples_per_gpu = 0;
  double compute = 0, loss_compute = 0, optimizer = 0;               // s
  double exposed_norm = 0, exposed_loss = 0, exposed_gradients = 0;  // s
  double gradient_seconds = 0;                                       // of all buckets, hidden or not
  double step = 0;                                                   // s, with the loader where it is the slower one
  bool loader_bound = false;
  double samples_per_s = 0, efficiency = 0;                   // against W times one GPU with as many samples of its own
  double loader_per_node = 0;                                 // samples/s that a node must load
  double loss_bytes = 0, norm_bytes = 0, gradient_bytes = 0;  // that cross a rank's link in a step
  struct Memory {
    double weights = 0, gradients = 0, optimizer = 0, activations = 0, loss = 0, context = 0;
    double total() const { return weights + gradients + optimizer + activations + loss + context; }
  } memory;                                                                                   // bytes of a GPU
  double checkpoint_bytes = 0, checkpoint_stall = 0, checkpoint_interval = 0, effective = 1;  // bytes, s, s, share
};

StepCost predict_step(const ModelCost& model, const Workload& workload, const Cluster& cluster, int gpus);

// The best time between checkpoints that stop the work for `stall`, with failures every `mtbf` on average.
// Reference: Young (1974): √(2·stall·mtbf); Daly (2006), the higher-order estimate.
double young_interval(double stall, double mtbf);
double daly_interval(double stall, double mtbf);
// Expected share of the time that is work which lasts, for failures at random (Daly 2006, his complete model).
double effective_share(double interval, double stall, double restart, double mtbf);

// Published measurements of scaling beside the model's predictions: pal plan --published, and a test.
// Networks of the points, with their classifiers, at 224 pixels.
ModelCost bottleneck_resnet(const std::vector<int>& blocks);  // {3,4,6,3}: ResNet-50; {3,4,23,3}: 101
ModelCost vgg16();

struct PublishedPoint {
  std::string what, source;
  int gpus = 1;
  double published = 0, predicted = 0;  // share of perfect scaling from one GPU
  bool fitted = false;                  // a parameter was chosen by this very point
};
std::vector<PublishedPoint> published_points();

}  // namespace pal::dist
