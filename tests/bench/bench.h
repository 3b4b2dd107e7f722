// bench: the options and entry points of the benchmarks; each source file describes its benchmark.
//
// A benchmark compares our side with named peers in one run. The parent starts each side as a long-lived process and
// runs them in turns, so that all sides see the same machine. A waiting side blocks on its input and uses no CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/spec.h"
#include "launch/process/interleaved.h"

namespace pal::dist {
class World;
}

namespace pal::bench {

// ---- `pal bench kernels` and `pal bench graph`: kernels.cpp, kernels_side.cpp, cases.h ----------------------------

enum class BenchSizes { full, small };
enum class BenchSuite { kernels, graph };

struct KernelBenchOptions {
  BenchSuite suite = BenchSuite::kernels;
  launch::PeerOptions peer{.script = "tests/bench/kernels_peer.py"};
  std::vector<std::string> cases = {};  // none: all
  std::string json = {};                // "" writes none
  BenchSizes sizes = BenchSizes::full;
  int threads = 2;  // of each side
  int turns = 10;
  int turn_ms = 100;
};

std::vector<std::string> bench_case_names(BenchSuite suite);
int bench_kernels(const KernelBenchOptions& options, const std::string& program);
// Our side of the single case in options.cases; reads its commands from standard input.
int bench_kernels_side(const KernelBenchOptions& options, const std::string& folder);

// ---- `pal bench step`: step.cpp, step_rank.cpp --------------------------------------------------------------------

struct StepCase {
  std::string name, script;
  int64_t projector = 0;          // width of its three layers; 0: network and loader of configs/quickstart.yaml
  int64_t checked_projector = 0;  // in the comparison of losses
  int64_t batch = 32;             // samples over both ranks, two views each
  int steps_per_turn = 2;
};
const std::vector<StepCase>& step_cases();

struct StepBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench"};         // the folder of the peers' scripts
  std::string json;                                          // "" writes none
  std::string peer_layout = "default";                       // default, channels_last
  std::vector<std::string> cases;                            // names; none: all
  std::string images = "/usr/share/datasets/fashion-mnist";  // IDX files, for quickstart
  int turns = 10;                                            // per side
  int steps_per_turn = 0;                                    // 0: the case's own
  int64_t check_batch = 16;                                  // of the comparison of losses, 16 × 16 pixels
};

// ResNet-18 with a projector of three layers of this width.
model::ModelSpec bench_step_model(int64_t projector);
int bench_step(const StepBenchOptions& options, const std::string& program);
// One of our ranks; reads its commands from its pipe in `folder`.
void bench_step_rank(const std::string& folder, const std::string& dtype, dist::World& world);

// ---- `pal bench data`: data.cpp, data_side.cpp, large_set.cpp -----------------------------------------------------

struct DataBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/data_peer.py"};
  std::string json;           // "" writes none
  int turns = 10;             // per side
  int64_t images = 256;       // 0 skips the comparison
  int64_t records = 1281167;  // of the ImageNet-sized set; 0 skips it
  int size = 224, batch = 32, threads = 2;
  int slow_turns = 5;  // of the slow disk and of the cold cache
};

int bench_data(const DataBenchOptions& options, const std::string& program);
// Our side, started by the parent; answers commands about the shard in `folder`.
int bench_data_side(const DataBenchOptions& options, const std::string& folder);
// Four processes open a set of `records` small records in 1,000 classes at once; returns their figures as JSON.
std::string bench_large_set(const DataBenchOptions& options, const std::string& program);
// One of the four: opens the set, orders an epoch, and prints its time and memory.
int bench_open_side(const std::string& folder);

// ---- `pal bench import`: import.cpp -------------------------------------------------------------------------------

struct ImportBenchOptions {
  std::string json, source;  // source: a folder of JPEG files; "": generated
  int turns = 10, threads = 2, quality = 90;
  int32_t resize_shorter = 256;
  int64_t images = 2000;  // to generate
};

int bench_import(const ImportBenchOptions& options);

// ---- `pal bench checkpoint`: checkpoint.cpp -----------------------------------------------------------------------

struct CheckpointBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/checkpoint_peer.py"};
  std::string json;  // "" writes none
  int turns = 5;
  int threads = 2;     // of our copy
  std::string folder;  // for both sides; "": a temporary one
  BenchSizes sizes = BenchSizes::full;
};

int bench_checkpoint(const CheckpointBenchOptions& options);

// ---- `pal bench experiment`: experiment.cpp -----------------------------------------------------------------------

struct ExperimentBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/experiment_numpy.py"};
  std::string json;     // "" writes none
  int turns = 5;        // per side
  int64_t trials = 10;  // a turn; the figure has 100
  int threads = 2;      // of each side
};
int bench_experiment(const ExperimentBenchOptions& options);

// ---- `pal bench oracle`: oracle.cpp, oracle_rank.cpp --------------------------------------------------------------

struct OracleBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/oracle_peer.py"};
  std::string json;
  int turns = 3;
  int threads = 2;  // of all ranks together
  std::vector<int> ranks = {1, 2};
  int64_t samples = 1281167, dims = 512, classes = 1000, pool = 131072, questions = 200;
  int64_t kmeans_rows = 65536;
  int64_t peer_pool = 16384;  // 0: without peers
};
int bench_oracle(const OracleBenchOptions& options, const std::string& program);
void bench_oracle_rank(const OracleBenchOptions& options, dist::World& world);  // Collective; threads: of this rank

const std::vector<std::string>& oracle_bench_samplers();
int64_t class_of_sample(int64_t sample, int64_t classes);
// (samples, D) unit rows: the direction of the class plus uniform noise of the same length.
at::Tensor synthetic_rows(const std::vector<int64_t>& samples, int64_t dims, int64_t classes, int threads);

}  // namespace pal::bench
