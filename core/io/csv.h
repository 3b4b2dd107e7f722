// csv: comma-separated files (RFC 4180: quotes, "" within them, any line ends) and the columns path and label.
#pragma once

#include <string>
#include <vector>

namespace pal::io {

// Empty rows are skipped. Throws Error (data) with the file and the line of a quote that is never closed.
std::vector<std::vector<std::string>> read_csv(const std::string& path);

struct NamedLabel {
  std::string name, label;
};

// The columns path (file, image, …) and label (class, target, …) of a file with a head; without one the first two.
// A row without a label has "".
std::vector<NamedLabel> read_manifest(const std::string& path);

}  // namespace pal::io
