#include "core/config/suggest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pal::config {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

static std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::string suggest(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  std::pair<size_t, size_t> best_distance;
  for (const std::string& candidate : candidates) {
    // The right key under a wrong section counts as near; among several such the nearest name wins.
    const size_t edits = edit_distance(name, candidate);
    const std::pair distance{last_part(name) == last_part(candidate) ? std::min<size_t>(edits, 1) : edits, edits};
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace pal::config
