#include "launch/process/interleaved.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "kernels/base/error.h"
#include "launch/process/subprocess.h"

namespace pal::launch {

namespace fs = std::filesystem;

BenchFolder::BenchFolder() : path((fs::temp_directory_path() / "pal-bench-XXXXXX").string()) {
  PAL_CHECK(mkdtemp(path.data()) != nullptr, "a temporary folder cannot be made", path,
            "set TMPDIR to a writable folder");
}

BenchFolder::~BenchFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

void check_peer_files(const PeerOptions& peer) {
  PAL_CHECK(fs::exists(peer.python), "there is no Python with torch here", peer.python,
            "run launch/setup, or give --python");
  PAL_CHECK(fs::exists(peer.script), "the script of the peer does not exist", peer.script,
            "run this in the checkout, or give --peer");
}

void install_peer(const PeerOptions& peer, const std::vector<std::string>& what) {
  std::vector<std::string> command = {peer.python, peer.script, "--setup", peer.packages};
  command.insert(command.end(), what.begin(), what.end());
  PAL_CHECK(Subprocess(command).wait() == 0, "the packages of the peer cannot be installed", peer.packages,
            "the output of pip is above");
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x.size() % 2 ? x[x.size() / 2] : (x[x.size() / 2 - 1] + x[x.size() / 2]) / 2;
}

double noise(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return (x[x.size() * 3 / 4] - x[x.size() / 4]) / 2 / median(x);
}

std::string verdict(double ratio, double noise) {
  if (std::abs(ratio - 1) <= noise) return "a tie within the noise";
  return ratio > 1 ? "ours is faster" : "the peer is faster";
}

}  // namespace pal::launch
