// interleaved: what the benchmarks share: a folder for both sides, statistics of interleaved turns.
#pragma once

#include <string>
#include <vector>

namespace pal::launch {

// A temporary folder that goes when this goes.
struct BenchFolder {
  std::string path;
  BenchFolder();
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
};

// Where the peers of a benchmark live.
struct PeerOptions {
  std::string python = ".deps/venv/bin/python";
  std::string script;
  std::string packages = ".deps/peer";  // the peers' own packages; installed there when they are missing
};
void check_peer_files(const PeerOptions& peer);  // throws Error (usage) when one is missing
// Installs the packages that `what` (words of the script's own) needs; nothing to do: a tenth of a second.
void install_peer(const PeerOptions& peer, const std::vector<std::string>& what = {});

double median(std::vector<double> x);
double noise(std::vector<double> x);  // half the spread of the middle half, relative to the median
// "a tie within the noise", "ours is faster" or "the peer is faster" of ratio = peer / ours.
std::string verdict(double ratio, double noise);

}  // namespace pal::launch
