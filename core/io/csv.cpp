#include "core/io/csv.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
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

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The first column with one of these names, in the order of preference; −1: none.
int find_column(const std::vector<std::string>& head, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (size_t c = 0; c < head.size(); ++c) {
      if (lower(head[c]) == name) return static_cast<int>(c);
    }
  }
  return -1;
}

// The column of this name, as it is written or in other case.
int named_column(const std::string& path, const std::vector<std::string>& head, const std::string& name) {
  for (size_t c = 0; c < head.size(); ++c) {
    if (head[c] == name) return static_cast<int>(c);
  }
  const int column = find_column(head, {lower(name).c_str()});
  std::string heads;
  for (const std::string& text : head) heads += (heads.empty() ? "" : ", ") + text;
  PAL_DATA_CHECK(column >= 0, path + " has no column of this name", name, "its columns are: " + heads);
  return column;
}

std::vector<std::vector<std::string>> parse_csv(std::string_view text, const std::string& path) {
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

// After any apostrophes, so that plain_field(csv_field(x)) is x for every x.
bool is_formula(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  if (text.empty() || std::string_view("=+-@\t\r").find(text[0]) == std::string_view::npos) return false;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data() + (text[0] == '+' ? 1 : 0), text.data() + text.size(), number);
  return error != std::errc() || end != text.data() + text.size();
}

// Without ".jpg" and the like: a dot, a letter and at most three more letters or digits.
std::string without_extension(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || name[dot - 1] == '/') return name;
  const size_t letters = name.size() - dot - 1;
  if (letters < 1 || letters > 4 || std::isalpha(static_cast<unsigned char>(name[dot + 1])) == 0) return name;
  for (size_t i = dot + 1; i < name.size(); ++i) {
    if (std::isalnum(static_cast<unsigned char>(name[i])) == 0) return name;
  }
  return name.substr(0, dot);
}

}  // namespace

std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::string text = read_whole_file(path);
  if (text.compare(0, 3, "\xEF\xBB\xBF") == 0) text.erase(0, 3);  // the byte order mark of some spreadsheets
  return parse_csv(text, path);
}

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

std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::vector<std::string>> rows = parse_csv(line, "the line");
  if (rows.empty()) return {};
  for (std::string& field : rows[0]) field = trimmed(std::move(field));
  return std::move(rows[0]);
}

Manifest read_manifest(const std::string& path, const ManifestColumns& columns) {
  std::vector<std::vector<std::string>> rows = read_csv(path);
  PAL_DATA_CHECK(!rows.empty(), path + " has no rows", "", "each is path,label");
  for (std::vector<std::string>& row : rows) {
    for (std::string& field : row) field = trimmed(std::move(field));
  }
  const std::vector<std::string> top = rows[0];
  int name = columns.path.empty() ? find_column(top, {"path", "file", "filename", "file_name", "filepath", "image",
                                                      "image_path", "img", "name", "id", "imageid"})
                                  : named_column(path, top, columns.path);
  int label = columns.label.empty() ? find_column(top, {"label", "class", "target", "category", "class_name",
                                                        "label_name", "classname", "y", "wnid"})
                                    : named_column(path, top, columns.label);
  const bool head = name >= 0 || !columns.label.empty();
  if (name < 0) name = label == 0 && head ? 1 : 0;
  if (!head) label = 1;
  Manifest list;
  if (head && label >= 0) list.label = top[static_cast<size_t>(label)];
  for (int c = 0; c < static_cast<int>(top.size()); ++c) {
    if (c != name && c != label)
      list.unused.push_back(head ? top[static_cast<size_t>(c)] : "column " + std::to_string(c + 1));
  }
  for (size_t r = head ? 1 : 0; r < rows.size(); ++r) {
    const std::vector<std::string>& row = rows[r];
    PAL_DATA_CHECK(static_cast<size_t>(name) < row.size() && !row[static_cast<size_t>(name)].empty(),
                   path + ": row {} has no path", r + 1, "each row is path,label");
    const bool labeled = label >= 0 && static_cast<size_t>(label) < row.size();
    const auto text = [&](int column) { return plain_field(row[static_cast<size_t>(column)]); };
    list.rows.push_back({text(name), labeled ? text(label) : ""});
  }
  return list;
}

Manifest read_manifest_column(const std::string& file_and_column) {
  const size_t colon = file_and_column.rfind(':');
  PAL_CHECK(colon != std::string::npos && colon > 0 && colon + 1 < file_and_column.size(),
            "a column of a CSV file is named FILE:COLUMN, not", file_and_column, "for instance meta.csv:patient");
  return read_manifest(file_and_column.substr(0, colon), {"", file_and_column.substr(colon + 1)});
}

NameIndex::NameIndex(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    add(full_, names[i], static_cast<int64_t>(i));
    add(bare_, without_extension(names[i]), static_cast<int64_t>(i));
  }
}

void NameIndex::add(Places& places, const std::string& name, int64_t position) {
  Place& own = places[name];
  own = {own.whole ? kAmbiguous : position, true};
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const auto [found, is_new] = places.emplace(name.substr(slash + 1), Place{position, false});
    if (!is_new && !found->second.whole) found->second.position = kAmbiguous;
  }
}

int64_t NameIndex::find_in(const Places& places, const std::string& name) {
  if (const auto found = places.find(name); found != places.end()) return found->second.position;
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const auto found = places.find(name.substr(slash + 1));
    if (found != places.end() && found->second.whole) return found->second.position;
  }
  return kNone;
}

int64_t NameIndex::find(const std::string& name) const {
  const int64_t position = find_in(full_, name);
  return position == kNone ? find_in(bare_, without_extension(name)) : position;
}

LabelsByFile::LabelsByFile(std::string path, const std::vector<NamedLabel>& rows)
    : path_(std::move(path)), index_([&] {
        std::vector<std::string> names;
        std::unordered_map<std::string, size_t> seen;
        for (const NamedLabel& row : rows) {
          const auto [found, is_new] = seen.emplace(row.name, labels_.size());
          PAL_DATA_CHECK(is_new || labels_[found->second] == row.label, path_ + " gives two labels for", row.name,
                         "keep one");
          if (!is_new) continue;
          names.push_back(row.name);
          labels_.push_back(row.label);
        }
        return NameIndex(names);
      }()) {}

const std::string* LabelsByFile::find(const std::string& file) const {
  const int64_t row = index_.find(file);
  PAL_DATA_CHECK(row != NameIndex::kAmbiguous, path_ + ": several rows match the file", file,
                 "write more of its path, or keep one");
  return row < 0 ? nullptr : &labels_[static_cast<size_t>(row)];
}

}  // namespace pal::io
