// train_check: pal train CONFIG --check: shapes, steps, learning rates, memory and bytes of a run, without running it.
#pragma once

#include <string>
#include <vector>

#include "core/setup/run_spec.h"

namespace pal::launch {

// Prints; the exit code. Works without the data set, and then says what is not known.
int check_training(const setup::RunSpec& spec, int ranks);

// A line of text that rises and falls with the values, one character each.
std::string sparkline(const std::vector<double>& values);

}  // namespace pal::launch
