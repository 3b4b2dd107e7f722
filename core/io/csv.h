// csv: comma-separated files (RFC 4180: quotes, "" within them, any line ends), their columns path and label, and the
// search for a file by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pal::io {

// Empty rows are skipped. Throws Error (data) with the file and the line of a quote that is never closed.
std::vector<std::vector<std::string>> read_csv(const std::string& path);

// A text as a field: in quotes where it needs them. A spreadsheet would run a text that starts with = + - @ as a
// formula, so it gets an apostrophe, unless it is a number; plain_field takes the apostrophe away again.
std::string csv_field(const std::string& text);
std::string plain_field(const std::string& field);
// The fields of one line.
std::vector<std::string> csv_fields(std::string_view line);

struct NamedLabel {
  std::string name, label;
};
struct ManifestColumns {
  std::string path, label;  // names of the columns; "": the usual names
};
struct Manifest {
  std::vector<NamedLabel> rows;     // a row without a label has ""
  std::string label;                // name of the column of labels; "" where there is none
  std::vector<std::string> unused;  // names of the other columns
};

// The columns path (file, image, …) and label (class, target, …) of a file with a header; without one the first two.
// Throws Error (data) with the names of the columns when a column that is asked for is missing.
Manifest read_manifest(const std::string& path, const ManifestColumns& columns = {});
// The same of FILE:COLUMN, whose column gives the labels.
Manifest read_manifest_column(const std::string& file_and_column);

// Finds files by name where two lists write their paths differently. Two names match when they are equal, or when one
// is the end of the other at a slash: "photos/train/a.jpg" is "train/a.jpg" and "a.jpg", but not "test/a.jpg". Where
// nothing matches, extensions are left out: "a" is "a.jpg". An equal name comes before any other; several other matches
// are ambiguous.
class NameIndex {
 public:
  static constexpr int64_t kNone = -1, kAmbiguous = -2;

  explicit NameIndex(const std::vector<std::string>& names);
  // The position of the name in the list, kNone or kAmbiguous.
  int64_t find(const std::string& name) const;

 private:
  struct Place {
    int64_t position = kNone;
    bool whole = false;  // the key is a name of the list; otherwise the end of one
  };
  using Places = std::unordered_map<std::string, Place>;
  static void add(Places& places, const std::string& name, int64_t position);
  static int64_t find_in(const Places& places, const std::string& name);

  Places full_, bare_;  // bare: without extensions
};

// The labels of rows by file. Throws Error (data) where a name has two labels, or a file several rows that match.
class LabelsByFile {
 public:
  LabelsByFile(std::string path, const std::vector<NamedLabel>& rows);
  const std::string* find(const std::string& file) const;  // null: no row names it

 private:
  std::string path_;  // for errors
  std::vector<std::string> labels_;
  NameIndex index_;
};

}  // namespace pal::io
