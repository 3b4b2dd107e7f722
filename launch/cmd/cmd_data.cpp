// cmd_data: `pal data import|info|verify`: imports data sets from other formats, shows and checks them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/data/dataset.h"
#include "core/data/image/png.h"
#include "core/data/shard_reader.h"
#include "core/data/verify.h"
#include "core/io/files.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/cmd/internal.h"
#include "launch/commands.h"
#include "launch/run/montage.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct Arguments {
  DataImport import;
  std::string data;
  std::string montage;
  int64_t limit = 50;
};

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

int run_info(const Arguments& args) {
  const std::vector<std::string> files = data::dataset_files(args.data);
  const auto data = data::Dataset::open(args.data);
  const data::ShardReader first(files[0]);
  int64_t bytes = 0;
  for (const std::string& file : files) bytes += static_cast<int64_t>(std::filesystem::file_size(file));
  const auto unknown = std::count(data->labels().begin(), data->labels().end(), -1);
  std::vector<std::vector<std::string>> rows = {
      {"data set", args.data},
      {"samples", std::to_string(data->size())},
      {"shape", shape_text(data->shape())},
      {"encoding", data->encoding() == data::Encoding::raw ? "raw" : "jpeg"},
      {"labels",
       data->labels().empty() ? "none" : fmt::format("{} known, {} unknown", data->size() - unknown, unknown)},
      {"classes", std::to_string(data->classes().size())},
      {"size", fmt::format("{} in {} file{}", megabytes(bytes), files.size(), files.size() == 1 ? "" : "s")},
      {"fingerprint", fmt::format("{:016x}", data->fingerprint())},
  };
  if (!first.split().empty()) rows.insert(rows.begin() + 1, {"split", first.split()});
  fmt::print("{}", format_table(rows));
  if (!data->classes().empty()) print_classes(*data, first, args.limit);
  if (!args.montage.empty()) {
    const data::Picture picture = make_montage(*data, {});
    const std::vector<uint8_t> png =
        data::encode_png(picture.pixels.data(), picture.height, picture.width, picture.channels);
    io::write_file_atomically(args.montage, {reinterpret_cast<const char*>(png.data()), png.size()});
    fmt::print("\n{}: a picture of {} samples with their labels\n", args.montage, montage_samples(*data, 48).size());
  }
  return static_cast<int>(Exit::ok);
}

int run_verify(const Arguments& args) {
  ProgressRate rate("verify");
  const data::VerifyReport report = data::verify_dataset(args.data, static_cast<size_t>(args.limit),
                                                         [&](int64_t done, int64_t total) { rate(done, total); });
  const double seconds = rate.finish();
  for (const std::string& complaint : report.complaints) fmt::print("{}\n", complaint);
  const int64_t bad = report.bad_samples + report.bad_files, shown = static_cast<int64_t>(report.complaints.size());
  if (bad > shown) fmt::print("… and {} more (--limit)\n", bad - shown);
  PAL_DATA_CHECK(
      report.good(), args.data + " is damaged",
      fmt::format("{} of {} samples and {} files are bad", report.bad_samples, report.samples, report.bad_files),
      "copy or import it again");
  fmt::print("{}: {} samples, {}, all checksums, offsets, labels and headers are correct ({:.1f} s)\n", args.data,
             report.samples, megabytes(report.image_bytes), seconds);
  return static_cast<int>(Exit::ok);
}

}  // namespace

int cmd_data(const std::vector<std::string>& arguments, Context&) {
  Arguments args;
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
    command->add_option("DATA", args.data, "a .h5 file, a folder of them, or a glob in quotes")->required();
    command->add_option("--limit", args.limit, "maximum number of lines in the list; default 50")
        ->check(CLI::NonNegativeNumber);
    command->footer(
        fmt::format("Examples:\n  pal data {0} data/fashion.h5\n  pal data {0} 'data/cifar100-0*.h5' --limit 100",
                    command->get_name()));
  }
  info.add_option("--montage", args.montage, "also write a picture of samples with their labels to this .png file");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (import.parsed()) return run_data_import(args.import);
  return info.parsed() ? run_info(args) : run_verify(args);
}

}  // namespace pal::launch
