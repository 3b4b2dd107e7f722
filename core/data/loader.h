// loader: the augmented views of the steps to come, prepared by threads ahead of the trainer.
//
// Thread: `threads` workers read, decode and augment; next() hands out steps in order and blocks until one is ready.
//   At most `depth` steps are held. An error in a worker is thrown by next(). The destructor stops and joins.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/sampler.h"
#include "core/graph/edge_draw.h"

namespace pal {

struct LoaderOptions {
  EpochPlan plan;                             // of the samples that come once per epoch
  int64_t edge_samples = 0;                   // at most so many more in each batch, from the draws of plan_on()
  std::vector<int64_t> subset;                // plan index → sample id; empty: all samples
  std::vector<kernels::ViewPolicy> views;     // V policies
  kernels::AugmentOptions augment;            // step is filled in by the loader
  at::ScalarType dtype = at::kFloat;
  int rank = 0, ranks = 1;
  int threads = 1;
  int depth = 3;
  int64_t first_step = 0;
  int64_t planned_until = 0;                  // steps below may be prepared from the start, without edge draws
};

struct LoadedStep {
  int64_t step = 0;
  std::vector<int64_t> samples;       // (B) of the GLOBAL batch
  std::vector<int64_t> rank_begin;    // (W + 1)
  at::Tensor images;                  // (V · local positions, C, size, size), view-major
};

class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> data, LoaderOptions options);
  ~Loader();
  // Steps up to `until` may be prepared too, with these draws (none: null). What is known at a step decides who is in
  // its batch, so the loader never runs ahead of what is known. Called when every planned step was handed out.
  void plan_on(int64_t until, std::shared_ptr<const EdgeDraw> edges);
  LoadedStep next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Evaluation views (no randomness) of the given samples, (n, C, size, size).
at::Tensor load_centre_views(const Dataset& data, const std::vector<int64_t>& samples,
                             const kernels::AugmentOptions& augment, at::ScalarType dtype, int threads);

}  // namespace pal
