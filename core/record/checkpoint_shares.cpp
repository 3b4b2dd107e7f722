#include "core/record/checkpoint_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pal::record {

std::vector<SharedFile> share_out(const std::vector<TensorGroup>& groups, int ranks, uint64_t smallest) {
  uint64_t all = 0;
  for (const TensorGroup& g : groups) all = std::accumulate(g.bytes.begin(), g.bytes.end(), all);
  // A tenth more, so that two groups of nearly the same size on two ranks are two files.
  const uint64_t target = std::max<uint64_t>({smallest, all / ranks + all / ranks / 10, 1});
  std::vector<SharedFile> files;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<uint64_t>& bytes = groups[g].bytes;
    if (bytes.empty()) continue;
    const uint64_t total = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
    const uint64_t pieces = std::max<uint64_t>(1, (total + target - 1) / target);
    const size_t first = files.size();
    uint64_t before = 0, current = 0;
    for (size_t t = 0; t < bytes.size(); ++t) {
      // A tensor belongs to the piece that holds its middle.
      const uint64_t piece = total == 0 ? 0 : (before + bytes[t] / 2) * pieces / total;
      if (t == 0 || piece != current) files.push_back({"", g, t, t, 0, 0});
      current = piece;
      files.back().end = t + 1;
      files.back().bytes += bytes[t];
      before += bytes[t];
    }
    const size_t count = files.size() - first;
    for (size_t k = 0; k < count; ++k)
      files[first + k].name =
          groups[g].name + (count == 1 ? "" : fmt::format("-{:05}-of-{:05}", k + 1, count)) + ".safetensors";
  }
  // The largest first, each to the rank that has least.
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return files[a].bytes > files[b].bytes; });
  std::vector<uint64_t> load(ranks, 0);
  for (const size_t k : order) {
    const auto least = std::min_element(load.begin(), load.end());
    files[k].rank = static_cast<int>(least - load.begin());
    *least += files[k].bytes;
  }
  return files;
}

}  // namespace pal::record
