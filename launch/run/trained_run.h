// trained_run: the encoder of a run and its features, for eval, embed, export and report.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/eval/embed.h"
#include "core/setup/run_spec.h"
#include "dist/comm/world.h"

namespace pal::model {
class Encoder;
}

namespace pal::launch {

// The config of a run folder. Throws Error (usage) if there is none.
config::Config run_config(const std::string& run);
setup::RunSpec run_spec(const std::string& run);

struct TrainedRun {
  std::shared_ptr<model::Encoder> encoder;  // in evaluation mode
  int64_t step = 0;                         // of the checkpoint
  std::string checkpoint;                   // its folder
};
// Loads the newest valid checkpoint onto `device` and prints a warning for each skipped one. Throws Error (data) if
// there is none.
TrainedRun load_trained_run(const std::string& run, const setup::RunSpec& spec, comm::Comm& comm,
                            at::Device device = at::kCPU);

// Collective. Features of every sample, in order, in host memory of every rank, with a progress bar on rank 0.
at::Tensor embed_all(model::Encoder& encoder, const setup::RunSpec& spec, const data::Dataset& data,
                     eval::EmbedWhat what, dist::World& world, const std::string& name);

}  // namespace pal::launch
