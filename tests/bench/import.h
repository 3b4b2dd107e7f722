// import: `pal data import` of JPEG files against what bounds it: the disk for copies, libjpeg for smaller ones.
//
// Who runs where: one process, its sides in turns. Copies: the same threads read the same files, one appends them to a
// file and syncs it. Smaller ones: the same threads decode at the same scale and encode again, and nothing else.
#pragma once

#include <cstdint>
#include <string>

namespace pal::bench {

struct ImportBenchOptions {
  std::string json, source;  // source: a folder of JPEG files; "": made here
  int turns = 10, threads = 2, quality = 90;
  int32_t resize_shorter = 256;
  int64_t images = 2000;  // to make
};

int bench_import(const ImportBenchOptions& options);

}  // namespace pal::bench
