// device_option: --device of the commands that compute with an encoder, and which device it means for this rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/setup/train_spec.h"
#include "dist/comm/world.h"

namespace CLI {
class App;
}

namespace pal::launch {

// `device` is the option's value: auto, cpu or cuda.
void add_device_option(CLI::App& app, std::string& device);

// Collective. What `setting` (train.device, --device), whose value is `asked`, means for this rank: World::use_device,
// except that float64 is for CPUs. Call it before taking a reference to a communicator of the world.
dist::DeviceDecision choose_device(const std::string& asked, const std::string& setting, const setup::TrainSpec& train,
                                   dist::World& world);

at::Device torch_device(const dist::DeviceDecision& decision);

// Collective. The same for --device and the encoder of a run; rank 0 prints a GPU.
at::Device encoder_device(const std::string& asked, const setup::TrainSpec& train, dist::World& world);

}  // namespace pal::launch
