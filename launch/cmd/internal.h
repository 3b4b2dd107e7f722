// internal: parts of commands that have a file of their own: `pal bench comm`, `pal data import`, `pal train --check`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/import/import.h"
#include "core/setup/run_spec.h"

namespace CLI {
class App;
}
namespace pal::dist {
class World;
}

namespace pal::launch {

// `pal bench comm` measures the collectives of MPI ranks on this machine and compares them with the alpha-beta model.
// A link is fitted to the sizes 64, 128, 256, … (dist/scale/collective_cost.h). It predicts the sizes between them, 96,
// 192, …; the report gives those errors beside the errors of a single line. A cluster file gets the links of the first
// number of ranks.
struct CommBenchOptions {
  std::string json;     // "" writes none
  std::string cluster;  // a cluster file for pal plan; "" writes none
  std::string device = "cpu";
  std::vector<int> ranks = {2, 4};
  int64_t most_bytes = 16 << 20;
  int turns = 20;
};
int bench_comm(const CommBenchOptions& options, const std::string& program);
// Collective: one of the ranks that bench_comm starts. Rank 0 prints a line of JSON.
void bench_comm_rank(const CommBenchOptions& options, dist::World& world);

// `pal data import`: chooses the importer, shows progress, prints the report.
struct DataImport {
  std::string format, classes;  // classes: names separated by commas
  data::ImportOptions options;
};
void add_import_options(CLI::App& command, DataImport& import);  // parsing `command` fills `import`
int run_data_import(DataImport wanted);

// `pal train CONFIG --check` prints shapes, steps, learning rates, memory and bytes of a run and returns the exit code.
// It works without the data set and then prints what is unknown.
int check_training(const setup::RunSpec& spec, int ranks);
// One character per value, higher for larger values.
std::string sparkline(const std::vector<double>& values);

}  // namespace pal::launch
