// interleaved: shared by the benchmarks: a folder for both sides, statistics of interleaved turns.
#pragma once

#include <string>
#include <vector>

namespace pal::launch {

// A temporary folder; the destructor removes it.
struct BenchFolder {
  std::string path;
  BenchFolder();
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
};

// Paths of the peers of a benchmark.
struct PeerOptions {
  std::string python = ".deps/venv/bin/python";
  std::string script;
  std::string packages = ".deps/peer";  // packages of the peers; installed there when they are missing
};
void check_peer_files(const PeerOptions& peer);  // throws Error (usage) when one is missing
// Installs the packages that `what` (arguments of the script) needs; takes a tenth of a second when all are there.
void install_peer(const PeerOptions& peer, const std::vector<std::string>& what = {});

double median(std::vector<double> x);
double noise(std::vector<double> x);  // half the spread of the middle half, relative to the median
// "a tie within the noise", "ours is faster" or "the peer is faster" of ratio = peer / ours.
std::string verdict(double ratio, double noise);

}  // namespace pal::launch
