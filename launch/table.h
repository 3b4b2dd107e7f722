// table: aligned text tables, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace pal::launch {

// The first row is the head. Columns whose cells (below the head) all start with a digit, sign or '-' are right-aligned.
// Widths count UTF-8 characters.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace pal::launch
