// cmd_data: `pal data import|info|verify`: imports data sets from other formats, shows and checks them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/data/dataset.h"
#include "core/data/feature_set.h"
#include "core/data/image/png.h"
#include "core/data/loader/augment_spec.h"
#include "core/data/shard_reader.h"
#include "core/data/verify.h"
#include "core/io/csv.h"
#include "core/io/files.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/cmd/internal.h"
#include "launch/commands.h"
#include "launch/run/montage.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct DataArguments {
  DataImport import;
  std::vector<std::string> data;
  std::string montage;
  int64_t limit = 50;
  bool list = false;
};

std::string data_name(const DataArguments& args) {
  std::string name;
  for (const std::string& file : args.data) name += (name.empty() ? "" : " ") + file;
  return name;
}

std::string shape_text(const std::vector<int32_t>& shape) {
  const auto side = [](int32_t n) { return n == 0 ? std::string("any") : std::to_string(n); };
  return side(shape[0]) + " x " + side(shape[1]) + " x " + side(shape[2]) + " (height x width x channels)";
}

void print_classes(const data::Dataset& data, const data::ShardReader& shard, int64_t limit) {
  const std::vector<std::string>& classes = data.classes();
  std::vector<int64_t> counts(classes.size(), 0);
  for (const int64_t label : data.labels()) {
    if (label >= 0) ++counts[static_cast<size_t>(label)];
  }
  const bool parents = !shard.parents().empty();
  std::vector<std::vector<std::string>> rows = {{"class", "samples", "name"}};
  if (parents) rows[0].push_back("parent");
  const size_t shown = std::min(classes.size(), static_cast<size_t>(limit));
  for (size_t c = 0; c < shown; ++c) {
    rows.push_back({std::to_string(c), std::to_string(counts[c]), classes[c]});
    if (!parents) continue;
    const int64_t inner = shard.parents()[c] - static_cast<int64_t>(classes.size());
    const bool named = inner >= 0 && inner < static_cast<int64_t>(shard.parent_names().size());
    rows.back().push_back(named ? shard.parent_names()[static_cast<size_t>(inner)]
                                : std::to_string(shard.parents()[c]));
  }
  fmt::print("\n{}", format_table(rows));
  if (shown < classes.size()) fmt::print("… and {} more classes (--limit)\n", classes.size() - shown);
}

// What to give as data.size.
std::string size_advice(const data::Dataset& data) {
  if (data.shape()[0] > 0) return "0: all images have this height";
  const int32_t size = data::suggested_size(data);
  return size > 0 ? fmt::format("data.size={} suits the median", size) : "import again to see the sizes";
}

std::string range_text(const data::SideRange& range) {
  return range.max == 0 ? "not known" : fmt::format("{} to {}, median {}", range.min, range.max, range.median);
}

// number,id,label of every sample. On a terminal control characters of the names are escaped.
int run_list(const data::Dataset& data) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const auto field = [&](const std::string& name) { return io::csv_field(terminal ? printable(name) : name); };
  fmt::print("number,id,label\n");
  for (int64_t i = 0; i < data.size(); ++i) {
    const int64_t label = data.labels().empty() ? -1 : data.labels()[static_cast<size_t>(i)];
    fmt::print("{},{},{}\n", i, field(data.id(i)), label < 0 ? "" : field(data.classes()[static_cast<size_t>(label)]));
  }
  return static_cast<int>(Exit::ok);
}

int show_features(const std::string& path, const data::Dataset& data) {
  const auto unknown = std::count(data.labels().begin(), data.labels().end(), -1);
  fmt::print("{}", format_table({{"data set", path},
                                 {"rows", std::to_string(data.size())},
                                 {"features", std::to_string(data.shape()[2])},
                                 {"labels", data.labels().empty()
                                                ? "none"
                                                : fmt::format("{} known, {} unknown", data.size() - unknown, unknown)},
                                 {"classes", std::to_string(data.classes().size())},
                                 {"fingerprint", fmt::format("{:016x}", data.fingerprint())}}));
  return static_cast<int>(Exit::ok);
}

int run_info(const DataArguments& args) {
  const auto data = data::Dataset::open(args.data);
  if (args.list) return run_list(*data);
  if (data->encoding() == data::Encoding::features) return show_features(args.data[0], *data);
  const std::vector<std::string> files = data::dataset_files(args.data);
  const data::ShardReader first(files[0]);
  int64_t bytes = 0;
  for (const std::string& file : files) bytes += static_cast<int64_t>(std::filesystem::file_size(file));
  const auto unknown = std::count(data->labels().begin(), data->labels().end(), -1);
  std::vector<std::vector<std::string>> rows = {
      {"data set", data_name(args)},
      {"samples", std::to_string(data->size())},
      {"shape", shape_text(data->shape())},
      {"encoding", data->encoding() == data::Encoding::raw ? "raw" : "jpeg"},
      {"labels",
       data->labels().empty() ? "none" : fmt::format("{} known, {} unknown", data->size() - unknown, unknown)},
      {"classes", std::to_string(data->classes().size())},
      {"size", fmt::format("{} in {} file{}", megabytes(bytes), files.size(), files.size() == 1 ? "" : "s")},
      {"fingerprint", fmt::format("{:016x}", data->fingerprint())},
  };
  if (data->shape()[0] == 0 || data->shape()[1] == 0) {
    rows.insert(rows.begin() + 3, {{"height", range_text(data->sides().height)},
                                   {"width", range_text(data->sides().width)},
                                   {"data.size", size_advice(*data)}});
  }
  if (!first.split().empty()) rows.insert(rows.begin() + 1, {"split", first.split()});
  fmt::print("{}", format_table(rows));
  if (!data->classes().empty()) print_classes(*data, first, args.limit);
  if (!args.montage.empty()) {
    const data::Picture picture = make_montage(*data, {});
    const std::vector<uint8_t> png =
        data::encode_png(picture.pixels.data(), picture.height, picture.width, picture.channels);
    io::write_file_atomically(args.montage, {reinterpret_cast<const char*>(png.data()), png.size()});
    fmt::print("\n{}: a picture of {} samples with their {}\n", args.montage, montage_samples(*data, 48).size(),
               data->labels().empty() ? "names" : "labels");
  }
  return static_cast<int>(Exit::ok);
}

int run_verify(const DataArguments& args) {
  if (args.data.size() == 1 && data::is_feature_file(args.data[0]))  // opening reads and checks every number
    return show_features(args.data[0], *data::Dataset::open(args.data));
  ProgressRate rate("verify");
  const data::VerifyReport report = data::verify_dataset(args.data, static_cast<size_t>(args.limit),
                                                         [&](int64_t done, int64_t total) { rate(done, total); });
  const double seconds = rate.finish();
  const std::string name = data_name(args);
  for (const std::string& complaint : report.complaints) fmt::print("{}\n", printable(complaint));
  const int64_t bad = report.bad_samples + report.bad_files, shown = static_cast<int64_t>(report.complaints.size());
  if (bad > shown) fmt::print("… and {} more (--limit)\n", bad - shown);
  PAL_DATA_CHECK(
      report.good(), name + " is damaged",
      fmt::format("{} of {} samples and {} files are bad", report.bad_samples, report.samples, report.bad_files),
      "copy or import it again");
  fmt::print("{}: {} samples, {}, all checksums, offsets, labels and headers are correct ({:.1f} s)\n", name,
             report.samples, megabytes(report.image_bytes), seconds);
  return static_cast<int>(Exit::ok);
}

}  // namespace

int cmd_data(const std::vector<std::string>& arguments, Context&) {
  DataArguments args;
  CLI::App app("Imports data sets from other formats, shows and checks them.", "pal data");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  pal data import idx /usr/share/datasets/fashion-mnist data/fashion.h5\n"
      "  pal data info data/fashion.h5\n"
      "  pal data verify data/fashion.h5");

  CLI::App& import =
      *app.add_subcommand("import", "Writes OUT.h5 (training split) and OUT-test.h5 from the files of another format.");
  add_import_options(import, args.import);

  CLI::App& info = *app.add_subcommand("info", "Shows the contents of a data set.");
  CLI::App& verify = *app.add_subcommand("verify", "Reads everything and lists what is damaged (exit code 3).");
  for (CLI::App* command : {&info, &verify}) {
    command->add_option("DATA", args.data, ".h5 files, a folder of them, or a glob; x.h5 also means its shards")
        ->required();
    command->add_option("--limit", args.limit, "maximum number of lines in the list; default 50")
        ->check(CLI::NonNegativeNumber);
    command->footer(fmt::format(
        "Examples:\n  pal data {0} data/fashion.h5\n  pal data {0} data/cifar100.h5 --limit 100", command->get_name()));
  }
  info.add_flag("--list", args.list, "print number,id,label of every sample as CSV instead");
  info.add_option("--montage", args.montage, "also write a picture of samples with their labels to this .png file");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (import.parsed()) return run_data_import(args.import);
  return info.parsed() ? run_info(args) : run_verify(args);
}

}  // namespace pal::launch
