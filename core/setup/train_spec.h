// train_spec: how a run trains, when it evaluates, saves and logs, and what `pal oracle` compares.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/choices.h"
#include "core/model/precision.h"

namespace pal::setup {

enum class Device { automatic, cpu, cuda };
enum class ViewPasses { joint, separate };  // one forward for all views of a size, or one each
// The type in which float32 gradients are sent between ranks (dist/train/grad_sync.h).
enum class GradDtype { full, bfloat16 };

inline constexpr config::NamedChoice<Device> kDevices[] = {
    {"auto", Device::automatic}, {"cpu", Device::cpu}, {"cuda", Device::cuda}};
inline constexpr config::NamedChoice<c10::ScalarType> kDtypes[] = {{"float32", c10::ScalarType::Float},
                                                                   {"float64", c10::ScalarType::Double}};

// The settings train.*. The defaults of all of them are those of core/config/keys.cpp.
struct TrainSpec {
  int64_t global_batch = 0;              // samples per step over all ranks
  std::optional<int64_t> steps, epochs;  // one of them, in a config that trains
  uint64_t seed = 0;
  Device device = Device::automatic;
  c10::ScalarType dtype = c10::ScalarType::Float;
  ViewPasses views = ViewPasses::joint;
  int64_t micro_batches = 1;
  model::Precision precision = model::Precision::full;
  bool deterministic = false;  // on GPUs
  double bucket_mb = 0;
  GradDtype grad_dtype = GradDtype::full;
  int threads = 0;            // of a rank; 0: its cores
  int64_t max_skips = 1;      // steps in a row with a gradient that is not finite
  int64_t compare_every = 1;  // steps between comparisons of the parameters of all ranks
  bool watchdog = true;
  double start_seconds = 0;                                           // that GPU ranks wait for each other at the start
  double heartbeat_seconds = 0, stall_seconds = 0, hang_seconds = 0;  // limits of the watchdog
};

struct EvalSpec {
  int64_t every = 0;  // steps; 0: no evaluation while training
  int64_t train_samples = 0, test_samples = 0;
};
struct CheckpointSpec {
  int64_t every = 1;  // steps
  int keep = 1;
  float minutes = 0;  // a checkpoint is due when this time or `every` has passed; 0: steps alone
};
struct LogSpec {
  int64_t every = 1;  // steps
};
struct CompareSpec {
  std::vector<std::string> lines;  // the oracles, as the config has them
  int64_t seeds = 0;
  std::vector<double> noise;
  int64_t points = 1, pca = 0, width = 1;
};

}  // namespace pal::setup
