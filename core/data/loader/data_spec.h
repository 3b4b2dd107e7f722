// data_spec: where a run's data lies, and how it is read: the settings data.* but those of the views (augment_spec.h).
#pragma once

#include <cstdint>
#include <string>

#include "core/data/loader/epoch_sampler.h"

namespace pal::data {

enum class Decoder { cpu, nvjpeg };  // of JPEG files: the loader's threads, or the GPU

// The defaults are those of core/config/keys.cpp.
struct DataSpec {
  std::string train, test;  // shards; "": none
  std::string stage;        // folder of a node to copy the training shards to; "": none
  int64_t limit = 0;        // samples trained on; 0: all
  int threads = 0, readers = 0;
  int prefetch = 0;  // steps
  int64_t memory_mb = 0;
  Decoder decoder = Decoder::cpu;
  Shuffle shuffle = Shuffle::full;
  int64_t window = 0;  // samples
};

}  // namespace pal::data
