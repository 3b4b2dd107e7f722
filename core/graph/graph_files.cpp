#include "core/graph/graph_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <string_view>

#include "core/io/csv.h"
#include "core/io/file_handle.h"
#include "core/io/files.h"
#include "core/io/h5.h"
#include "kernels/base/error.h"

namespace pal::graph {
namespace {

std::string line_of(const std::string& path, int64_t line) { return path + " line " + std::to_string(line); }

// Parses numbers between commas or semicolons; false if one is not a number.
bool split_numbers(std::string_view line, std::vector<double>& values) {
  values.clear();
  const char *at = line.data(), *end = at + line.size();
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (true) {
    while (at < end && blank(*at)) ++at;
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) return false;
    values.push_back(value);
    at = next;
    while (at < end && blank(*at)) ++at;
    if (at == end) return true;
    if (*at != ',' && *at != ';') return false;
    ++at;
  }
}

// Reads a line that is no list of numbers; false: it has none to give.
using ReadWords = std::function<bool(int64_t line, std::string_view row, std::vector<double>& values)>;

// Calls f(line number, values) for every line with numbers. The first line may be a header; empty lines are skipped.
template <class F>
void for_each_row(const std::string& path, const F& f, const ReadWords& words = {}) {
  const std::string text = io::read_whole_file(path);
  std::vector<double> values;
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row(text.data() + begin, end - begin);
    begin = end + 1;
    ++line;
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (split_numbers(row, values) || (words && words(line, row, values))) {
      f(line, values);
    } else {
      PAL_DATA_CHECK(line == 1, line_of(path, line) + " is not a list of numbers", std::string(row.substr(0, 60)),
                     "write numbers between commas");
    }
  }
}

int64_t index_of(double value, const std::string& path, int64_t line) {
  PAL_DATA_CHECK(value == std::floor(value) && std::abs(value) < 1e15,
                 line_of(path, line) + ": {} is not the number of a sample", value, "samples are whole numbers from 0");
  return static_cast<int64_t>(value);
}

bool is_hdf5(const std::string& path) { return path.ends_with(".h5") || path.ends_with(".hdf5"); }

std::vector<int64_t> read_integers(const io::h5::File& file, const std::string& name) {
  try {
    return file.read<int64_t>(name);
  } catch (const Error&) {  // scipy writes 32-bit indices; for any other type this read reports the error
    const std::vector<int32_t> narrow = file.read<int32_t>(name);
    return {narrow.begin(), narrow.end()};
  }
}

PairsFile read_csr(const std::string& path, int64_t samples) {
  const io::h5::File file = io::h5::File::open(path);
  const std::vector<int64_t> indptr = read_integers(file, "/graph/indptr"),
                             indices = read_integers(file, "/graph/indices");
  const std::vector<double> data = file.read<double>("/graph/data");
  if (samples == kAsInFile) samples = std::max<int64_t>(static_cast<int64_t>(indptr.size()) - 1, 0);
  PAL_DATA_CHECK(static_cast<int64_t>(indptr.size()) == samples + 1, path + ": /graph/indptr has {} rows",
                 static_cast<int64_t>(indptr.size()) - 1,
                 "give one for each of the " + std::to_string(samples) + " samples");
  PAL_DATA_CHECK(indptr.front() == 0 && std::is_sorted(indptr.begin(), indptr.end()) &&
                     indptr.back() == static_cast<int64_t>(indices.size()) && indices.size() == data.size(),
                 path + ": /graph/indptr ends with {}", indptr.back(),
                 "indptr ascends from 0 to the number of indices and of data");
  std::vector<WeightedPair> pairs;
  pairs.reserve(indices.size());
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) pairs.push_back({i, indices[k], data[k]});
  }
  return {samples, std::move(pairs)};
}

}  // namespace

PairsFile read_pairs(const std::string& path, int64_t samples, const NamesOf& names) {
  if (is_hdf5(path)) return read_csr(path, samples);
  // i,j[,weight] with names. The first line may be a header: one whose names are not those of samples.
  const auto read_names = [&](int64_t line, std::string_view row, std::vector<double>& values) {
    const std::vector<std::string> fields = io::csv_fields(row);
    if (fields.size() < 2) return false;
    values.assign(fields.size(), 0);
    int64_t known = 0;
    std::string unknown;
    for (size_t k = 0; k < fields.size(); ++k) {
      std::vector<double> number;
      if (split_numbers(fields[k], number) && number.size() == 1) {
        values[k] = number[0];
        continue;
      }
      if (k >= 2 || (line == 1 && !names)) return false;
      PAL_DATA_CHECK(names, line_of(path, line) + " names samples", fields[k],
                     "name the data set that has them with --data");
      const int64_t sample = names().find(fields[k]);
      PAL_DATA_CHECK(sample != io::NameIndex::kAmbiguous, line_of(path, line) + ": several samples have the name",
                     fields[k], "write more of its path");
      values[k] = static_cast<double>(sample);
      if (sample == io::NameIndex::kNone)
        unknown = fields[k];
      else
        ++known;
    }
    PAL_DATA_CHECK(unknown.empty() || (line == 1 && known == 0), line_of(path, line) + ": no sample has the name",
                   unknown,
                   "`pal data info DATA --list` shows the names; leave out pairs with images of the test split");
    return unknown.empty();
  };
  std::vector<WeightedPair> pairs;
  int64_t largest = -1;
  for_each_row(
      path,
      [&](int64_t line, const std::vector<double>& row) {
        PAL_DATA_CHECK(row.size() == 2 || row.size() == 3, line_of(path, line) + " has {} numbers", row.size(),
                       "write i,j or i,j,weight");
        const int64_t i = index_of(row[0], path, line), j = index_of(row[1], path, line);
        const auto inside = [&](int64_t s) { return s >= 0 && (s < samples || samples == kAsInFile); };
        PAL_DATA_CHECK(inside(i) && inside(j), line_of(path, line) + ": sample outside the data set", inside(i) ? j : i,
                       samples == kAsInFile ? "samples are whole numbers from 0"
                                            : "samples are 0 to " + std::to_string(samples - 1));
        largest = std::max({largest, i, j});
        const double weight = row.size() == 3 ? row[2] : 1.0;
        PAL_DATA_CHECK(std::isfinite(weight), line_of(path, line) + ": the weight is {}", weight, "give a finite one");
        pairs.push_back({i, j, weight});
      },
      read_names);
  return {samples == kAsInFile ? largest + 1 : samples, std::move(pairs)};
}

void write_pairs(const std::string& path, const WeightedEdges& edges) {
  if (is_hdf5(path)) {
    io::PartialFile partial(path);
    io::h5::File file = io::h5::File::create(partial.path(), path);
    file.make_group("/graph");
    file.write("/graph/indptr", edges.offsets());
    file.write("/graph/indices", edges.columns());
    file.write("/graph/data", edges.weights());
    file.close();
    file.handle().sync();
    partial.publish();
    return;
  }
  std::string text = "i,j,weight\n";
  char number[32];
  const auto append = [&](auto value, char after) {
    text.append(number, std::to_chars(number, number + sizeof(number), value).ptr);
    text += after;
  };
  for (int64_t i = 0; i < edges.samples(); ++i) {
    for (int64_t k = edges.offsets()[i]; k < edges.offsets()[i + 1]; ++k) {
      if (edges.columns()[k] < i) continue;
      append(i, ',');
      append(edges.columns()[k], ',');
      append(edges.weights()[k], '\n');
    }
  }
  io::write_file_atomically(path, text);
}

LossTable read_loss_table(const std::string& path) {
  LossTable table;
  for_each_row(path, [&](int64_t line, const std::vector<double>& row) {
    if (table.classes == 0) table.classes = static_cast<int64_t>(row.size());
    PAL_DATA_CHECK(static_cast<int64_t>(row.size()) == table.classes, line_of(path, line) + " has {} losses",
                   row.size(), "give as many as in the first line, " + std::to_string(table.classes));
    table.loss.insert(table.loss.end(), row.begin(), row.end());
  });
  const int64_t classes = table.classes;
  PAL_DATA_CHECK(classes > 0 && static_cast<int64_t>(table.loss.size()) == classes * classes,
                 path + " has {} lines of losses", classes > 0 ? static_cast<int64_t>(table.loss.size()) / classes : 0,
                 "give as many lines as classes");
  for (int64_t a = 0; a < classes; ++a) {
    for (int64_t b = 0; b < classes; ++b) {
      const std::string where = path + ": the loss between classes " + std::to_string(a) + " and " + std::to_string(b);
      PAL_DATA_CHECK(std::isfinite(table.loss[a * classes + b]), where + " is {}", table.loss[a * classes + b],
                     "give a finite one");
      PAL_DATA_CHECK(table.loss[a * classes + b] == table.loss[b * classes + a],
                     where + " is {}, and another one in the other direction", table.loss[a * classes + b],
                     "give a symmetric table");
    }
  }
  return table;
}

Targets read_targets(const std::string& path, int64_t samples) {
  Targets targets;
  int64_t rows = 0;
  for_each_row(path, [&](int64_t line, const std::vector<double>& row) {
    if (targets.width == 0) targets.width = static_cast<int32_t>(row.size());
    PAL_DATA_CHECK(static_cast<int32_t>(row.size()) == targets.width, line_of(path, line) + " has {} numbers",
                   row.size(), "give as many as in the first line, " + std::to_string(targets.width));
    for (double value : row)
      PAL_DATA_CHECK(std::isfinite(value), line_of(path, line) + ": a target is {}", value, "give a finite one");
    targets.values.insert(targets.values.end(), row.begin(), row.end());
    ++rows;
  });
  PAL_DATA_CHECK(rows == samples, path + " has {} lines of targets", rows,
                 "give one for each of the " + std::to_string(samples) + " samples");
  return targets;
}

}  // namespace pal::graph
