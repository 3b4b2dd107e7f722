#include "launch/table.h"

#include <algorithm>
#include <cctype>

namespace pal::launch {
namespace {

size_t width(const std::string& text) {  // continuation bytes of UTF-8 take no place
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool looks_numeric(const std::string& cell) {
  return cell.empty() || std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+';
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < rows[r].size(); ++c) {
      if (c == widths.size()) {
        widths.push_back(0);
        right.push_back(rows.size() > 1);
      }
      widths[c] = std::max(widths[c], width(rows[r][c]));
      if (r > 0 && !looks_numeric(rows[r][c])) right[c] = false;
    }
  }
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - width(row[c]), ' ');
      if (c > 0) line += "  ";
      line += right[c] ? space + row[c] : row[c] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace pal::launch
