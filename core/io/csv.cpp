#include "core/io/csv.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::io {
namespace {

std::string trimmed(std::string text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(std::find_if_not(text.rbegin(), text.rend(), space).base(), text.end());
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  return text;
}

// The first column whose head is one of these, in the order of preference; −1: none.
int find_column(const std::vector<std::string>& head, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (size_t c = 0; c < head.size(); ++c) {
      std::string lower = trimmed(head[c]);
      for (char& ch : lower) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
      if (lower == name) return static_cast<int>(c);
    }
  }
  return -1;
}

// After any apostrophes, so that plain_field(csv_field(x)) is x for every x.
bool is_formula(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  if (text.empty() || std::string_view("=+-@\t\r").find(text[0]) == std::string_view::npos) return false;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data() + (text[0] == '+' ? 1 : 0), text.data() + text.size(), number);
  return error != std::errc() || end != text.data() + text.size();
}

}  // namespace

std::string csv_field(const std::string& text) {
  const std::string field = is_formula(text) ? "'" + text : text;
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string plain_field(const std::string& field) {
  return field.starts_with('\'') && is_formula(field) ? field.substr(1) : field;
}

std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::string text = read_whole_file(path);
  if (text.compare(0, 3, "\xEF\xBB\xBF") == 0) text.erase(0, 3);  // the byte order mark of some spreadsheets
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  size_t line = 1;
  const auto end_row = [&] {
    row.push_back(std::exchange(field, {}));
    if (std::any_of(row.begin(), row.end(), [](const std::string& f) { return !f.empty(); }))
      rows.push_back(std::move(row));
    row.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && field.empty()) {
      const size_t opened = line;
      for (++i;; ++i) {
        PAL_DATA_CHECK(i < text.size(), path + ": a quote is never closed; it begins in line {}", opened, "close it");
        if (text[i] == '\n') ++line;
        if (text[i] != '"')
          field += text[i];
        else if (i + 1 < text.size() && text[i + 1] == '"')
          field += text[++i];
        else
          break;
      }
    } else if (c == ',') {
      row.push_back(std::exchange(field, {}));
    } else if (c == '\n') {
      ++line;
      end_row();
    } else if (c != '\r' || (i + 1 < text.size() && text[i + 1] != '\n')) {
      field += c;
    }
  }
  end_row();
  return rows;
}

std::vector<NamedLabel> read_manifest(const std::string& path) {
  const std::vector<std::vector<std::string>> rows = read_csv(path);
  PAL_DATA_CHECK(!rows.empty(), path + " has no rows", "", "each is path,label");
  int name = find_column(rows[0], {"path", "file", "filename", "file_name", "filepath", "image", "image_path", "img",
                                   "name", "id", "imageid"});
  int label = find_column(
      rows[0], {"label", "class", "target", "category", "class_name", "label_name", "classname", "y", "wnid"});
  const bool head = name >= 0;
  if (!head) {
    name = 0;
    label = 1;
  }
  std::vector<NamedLabel> list;
  for (size_t r = head ? 1 : 0; r < rows.size(); ++r) {
    const std::vector<std::string>& row = rows[r];
    PAL_DATA_CHECK(static_cast<size_t>(name) < row.size() && !trimmed(row[static_cast<size_t>(name)]).empty(),
                   path + ": row {} has no path", r + 1, "each row is path,label");
    const bool labeled = label >= 0 && static_cast<size_t>(label) < row.size();
    const auto text = [&](int column) { return plain_field(trimmed(row[static_cast<size_t>(column)])); };
    list.push_back({text(name), labeled ? text(label) : ""});
  }
  return list;
}

}  // namespace pal::io
