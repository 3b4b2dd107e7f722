// loader: the augmented views of the steps to come, prepared by threads ahead of the trainer.
//
// Thread: `threads` workers decode and augment, `readers` more only read ahead (they wait for the disk, so that the
//   workers need not); a worker that finds nothing read reads for itself. Samples are taken one by one, oldest step
//   first, by whoever is free. next() hands out steps in order and blocks until one is ready. An error in a thread is
//   thrown by next(). The destructor stops and joins.
// Memory: the views of at most `depth` steps, and of the one in the trainer's hands; fewer where they would not fit into
//   memory_mb. An eighth of that is for the bytes of images that were read and not yet decoded. Where the device renders,
//   a step waits as the decoded parts of its images, in pinned memory for a GPU. Where it decodes, too, what `decoder` makes
//   of the files waits in memory of its own, which is counted as the decoded parts would be.
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
  device,   // workers only decode what the views need; the device makes them, on its current stream, in next()
};

struct LoaderOptions {
  EpochSpec plan;               // of the samples that come once per epoch
  int64_t edge_samples = 0;     // at most so many more in each batch, from the draws of plan_on()
  std::vector<int64_t> subset;  // plan index → sample id; empty: all samples
  ViewSet views;
  at::ScalarType dtype = at::kFloat;
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  // of this machine: they share the reading ahead
  int threads = 1, readers = 1;
  int depth = 3;
  int64_t memory_mb = 4096;
  Render render = Render::workers;
  at::Device device = at::kCPU;  // of the views; another one than the CPU renders itself
  std::shared_ptr<DeviceDecoder>
      decoder;  // of the device that renders, for JPEG files and whole decodes; null: libjpeg, by workers
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
  double read_ahead_mb = 0;     // most bytes of images that were read and not yet decoded, so far
  double waited_s = 0;          // by next(), in all
  RenderTimes cpu;                // of all threads
  int64_t left_to_libjpeg = 0;  // images that `decoder` did not take
};

class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> data, LoaderOptions options);
  ~Loader();
  // Steps up to `until` may be prepared too, with these draws (none: null). What is known at a step decides who is in
  // its batch, so the loader never runs ahead of what is known. Called when every planned step was handed out.
  void plan_on(int64_t until, std::shared_ptr<const graph::EdgeDraw> edges);
  LoadedStep next();
  LoaderReport report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Evaluation views (no randomness) of the given samples, (n, C, size, size).
at::Tensor load_center_views(const Dataset& data, const std::vector<int64_t>& samples,
                             const kernels::AugmentOptions& augment, at::ScalarType dtype, int threads);

}  // namespace pal::data
