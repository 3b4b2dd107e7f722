// loader: prepares the augmented views of coming steps in threads, ahead of the trainer.
//
// Thread: `threads` workers decode and augment; `readers` more threads only read ahead, so that workers need not wait
//   for the disk. A worker that finds no bytes reads them itself. A free thread takes the next tile of the oldest step.
//   next() returns steps in order and blocks until one is ready. next() rethrows an error of a thread. The destructor
//   stops and joins the threads.
// Memory: the views of at most `depth` steps and of the step that the trainer uses; fewer when memory_mb is too small.
//   An eighth of memory_mb is for images that were read and not yet decoded. When the device renders, a step waits as
//   the decoded parts of its images, in pinned memory for a GPU. When the device also decodes, the output of `decoder`
//   waits in its own memory, which counts as much as the decoded parts would.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/loader/epoch_sampler.h"
#include "core/data/loader/image_pool.h"
#include "core/data/loader/renderer.h"
#include "core/graph/edge_draw.h"

namespace pal::data {

enum class Render {
  workers,  // make the views, in memory
  device,   // workers only decode; the device makes the views in next(), on its current stream
};

struct LoaderOptions {
  EpochSpec plan;               // of the samples that come once per epoch
  int64_t edge_samples = 0;     // most additional samples of a batch, from the draws of plan_on()
  std::vector<int64_t> subset;  // plan index → sample id; empty: all samples
  ViewSet views;
  at::ScalarType dtype = at::kFloat;
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  // ranks of this machine divide the read-ahead among them
  int threads = 1, readers = 1;
  int depth = 3;
  int64_t memory_mb = 4096;
  Render render = Render::workers;
  at::Device device = at::kCPU;  // of the views; a device other than the CPU renders them itself
  std::shared_ptr<DeviceDecoder>
      decoder;  // decodes JPEG files on that device, with Decode::full; null: workers use libjpeg
  int64_t first_step = 0;
  int64_t planned_until = 0;  // steps below may be prepared from the start, without edge draws
};

struct LoadedStep {
  int64_t step = 0;
  std::vector<int64_t> samples;     // (B) of the GLOBAL batch
  std::vector<double> weights;      // (B) 1/π: π the probability that the sample is in a batch of this step
  std::vector<int64_t> rank_begin;  // (W + 1)
  at::Tensor images;                // (large views · local positions, C, size, size), view-major
  at::Tensor small_images;          // the same of the small views; undefined where there are none
};

struct LoaderReport {
  int depth = 0;                // steps prepared ahead
  double bound_mb = 0;          // of the views (or parts) of those steps, and of what is read ahead
  double read_ahead_mb = 0;     // peak of the images that were read and not yet decoded
  double waited_s = 0;          // total time that next() has waited
  RenderTimes cpu;              // of all threads
  int64_t left_to_libjpeg = 0;  // images that `decoder` did not take
};

class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> data, LoaderOptions options);
  ~Loader();
  // Allows the steps up to `until`, with these draws (null: none). The known pairs at a step decide which samples are
  // in its batch, so the loader must not run ahead of them. Call it after next() has returned every planned step.
  void plan_on(int64_t until, std::shared_ptr<const graph::EdgeDraw> edges);
  LoadedStep next();
  LoaderReport report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A loader of the views of evaluation: one per sample, without randomness, in the order of `samples`. At most `batch`
// samples in a step, fewer where they are large; planned_until is the number of steps.
LoaderOptions center_views(const Dataset& data, std::vector<int64_t> samples, int64_t batch,
                           const kernels::AugmentOptions& augment, at::ScalarType dtype);

// Lets a GPU make the views. The workers make views in fp64 and rows of features.
void render_on(at::Device device, const Dataset& data, LoaderOptions& options);

}  // namespace pal::data
