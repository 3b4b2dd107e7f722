// bench_comm: the collectives of MPI ranks on this machine, measured, and how well the alpha-beta model describes them.
//
// A link is fitted to the sizes 64, 128, 256, … (dist/scale/collective_cost.h); the sizes between them, 96, 192, …, are predicted, and the
// errors are those, beside the errors of a single line. A cluster file gets the links of the first number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/comm/world.h"

namespace pal::launch {

struct CommBenchOptions {
  std::string json;     // "" writes none
  std::string cluster;  // a cluster file for pal plan, "" writes none
  std::string device = "cpu";
  std::vector<int> ranks = {2, 4};
  int64_t most_bytes = 16 << 20;
  int turns = 20;
};

int bench_comm(const CommBenchOptions& options, const std::string& program);
// Collective: one of the ranks that the above starts. Rank 0 prints a line of JSON.
void bench_comm_rank(const CommBenchOptions& options, dist::World& world);

}  // namespace pal::launch
