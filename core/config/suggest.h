// suggest: the known name that a mistyped one most likely means.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pal::config {

// Levenshtein distance: insertions, deletions and substitutions of bytes.
size_t edit_distance(const std::string& a, const std::string& b);

// The candidate at the least distance; the first of equals, "" when there is none. A dotted name whose last part is
// exactly a candidate's counts as close to it: `model.seed` means train.seed rather than model.stem.
std::string suggest(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace pal::config
