// csv: comma-separated files (RFC 4180: quotes, "" within them, any line ends) and the columns path and label.
#pragma once

#include <string>
#include <vector>

namespace pal::io {

// Empty rows are skipped. Throws Error (data) with the file and the line of a quote that is never closed.
std::vector<std::vector<std::string>> read_csv(const std::string& path);

// A text as a field: in quotes where it needs them. A spreadsheet would run a text that starts with = + - @ as a
// formula, so it gets an apostrophe, unless it is a number; plain_field takes the apostrophe away again.
std::string csv_field(const std::string& text);
std::string plain_field(const std::string& field);

struct NamedLabel {
  std::string name, label;
};

// The columns path (file, image, …) and label (class, target, …) of a file with a head; without one the first two.
// A row without a label has "".
std::vector<NamedLabel> read_manifest(const std::string& path);

}  // namespace pal::io
