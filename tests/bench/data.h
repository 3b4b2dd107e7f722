// data: loading JPEG files into two VICReg views, ours against torchvision's DataLoader and FFCV; then a slow disk, a cold
// cache, and a data set as large as ImageNet.
//
// Who runs where: the peer's script makes the files once; the parent puts the same bytes into a shard, starts every side as
// a process that stays alive, and gives them turns: a turn loads every file once, with two threads or workers. A side that
// waits sleeps. First the pixels: our crops of the real images must be torchvision's within 2/255, or nothing is timed.
#pragma once

#include <cstdint>
#include <string>

#include "launch/process/interleaved.h"

namespace pal::bench {

struct DataBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/data_peer.py"};
  std::string json;           // "" writes none
  int turns = 10;             // per side
  int64_t images = 256;       // 0 leaves the comparison out
  int64_t records = 1281167;  // of the set that is as large as ImageNet; 0 leaves it out
  int size = 224, batch = 32, threads = 2;
  int slow_turns = 5;  // of the slow disk and of the cold cache
};

int bench_data(const DataBenchOptions& options, const std::string& program);
// Our side, started by the parent: answers lines about the shard in `folder`.
int bench_data_side(const DataBenchOptions& options, const std::string& folder);
// A set of `records` small records and 1,000 classes, opened by four processes at once: a JSON object of what they say.
std::string bench_large_set(const DataBenchOptions& options, const std::string& program);
// One of the four: opens, plans an epoch, and says how long it took and what it holds.
int bench_open_side(const std::string& folder);

}  // namespace pal::bench
