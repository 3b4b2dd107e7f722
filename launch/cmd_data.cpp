// cmd_data: `pal data import|info|verify`: data sets from other formats, what is in one, and whether it is whole.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <sstream>

#include "core/data/dataset.h"
#include "core/data/import.h"
#include "core/data/shard_reader.h"
#include "core/data/verify.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/progress.h"
#include "launch/table.h"

namespace pal {
namespace {

struct Arguments {
  std::string format, source, classes;
  ImportOptions import;
  std::string data;
  int64_t limit = 50;
};

// Ctrl-C and a job's end wait until the work in hand is undone: raise() then throws, files in the making vanish, and the
// destructor lets the signal end the process as it would have.
class DeferredSignals {
 public:
  DeferredSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~DeferredSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  DeferredSignals(const DeferredSignals&) = delete;

  void raise() const {
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      if (sigismember(&pending, signal) == 1) throw Error(Exit::check_failed, "stopped by a signal; nothing was written");
    }
  }

 private:
  sigset_t signals_, before_;
};

// A bar with its rate, made when the total is known.
class Rate {
 public:
  explicit Rate(std::string what) : what_(std::move(what)) {}
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double finish() {   // ends the bar's line
    bar_.reset();
    return seconds();
  }
  void operator()(int64_t done, int64_t total) {
    if (!bar_) bar_ = std::make_unique<Progress>(what_, total);
    bar_->update(done, fmt::format("{:.0f} images/s", static_cast<double>(done) / std::max(seconds(), 1e-9)));
  }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<Progress> bar_;
};

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

std::string first_and_count(const std::vector<std::string>& files) {
  return files.size() == 1 ? files[0] : fmt::format("{} … ({} shards)", files[0], files.size());
}

int run_import(Arguments args) {
  std::istringstream names(args.classes);
  for (std::string name; std::getline(names, name, ',');) args.import.classes.push_back(name);
  std::signal(SIGXFSZ, SIG_IGN);   // a file size limit is an error of the write, not the end of the process
  const DeferredSignals signals;
  Rate rate("import");
  args.import.progress = [&](int64_t done, int64_t total) {
    signals.raise();
    rate(done, total);
  };
  const auto import = args.format == "idx" ? import_idx : args.format == "cifar10" ? import_cifar10 : import_cifar100;
  const ImportReport report = import(args.import);
  const double seconds = rate.finish();
  int64_t samples = 0;
  std::vector<std::vector<std::string>> rows = {{"split", "samples", "classes", "images", "file"}};
  for (const ImportedSplit& split : report.splits) {
    samples += split.samples;
    rows.push_back({split.name, std::to_string(split.samples), std::to_string(report.classes.size()), megabytes(split.image_bytes),
                    first_and_count(split.files)});
  }
  fmt::print("{}{} images in {:.1f} s; look at them with: pal data info {}\n", format_table(rows), samples, seconds,
             report.splits[0].files[0]);
  return static_cast<int>(Exit::ok);
}

std::string shape_text(const std::vector<int32_t>& shape) {
  const auto side = [](int32_t n) { return n == 0 ? std::string("any") : std::to_string(n); };
  return side(shape[0]) + " x " + side(shape[1]) + " x " + side(shape[2]) + " (height x width x channels)";
}

void print_classes(const Dataset& data, const ShardReader& shard, int64_t limit) {
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
    rows.back().push_back(named ? shard.parent_names()[static_cast<size_t>(inner)] : std::to_string(shard.parents()[c]));
  }
  fmt::print("\n{}", format_table(rows));
  if (shown < classes.size()) fmt::print("… and {} more classes (--limit)\n", classes.size() - shown);
}

int run_info(const Arguments& args) {
  const std::vector<std::string> files = dataset_files(args.data);
  const auto data = Dataset::open(args.data);
  const ShardReader first(files[0]);
  int64_t bytes = 0;
  for (const std::string& file : files) bytes += static_cast<int64_t>(std::filesystem::file_size(file));
  const auto unknown = std::count(data->labels().begin(), data->labels().end(), -1);
  std::vector<std::vector<std::string>> rows = {
      {"data set", args.data},
      {"samples", std::to_string(data->size())},
      {"shape", shape_text(data->shape())},
      {"encoding", data->encoding() == Encoding::raw ? "raw" : "jpeg"},
      {"labels", data->labels().empty() ? "none" : fmt::format("{} known, {} unknown", data->size() - unknown, unknown)},
      {"classes", std::to_string(data->classes().size())},
      {"size", fmt::format("{} in {} file{}", megabytes(bytes), files.size(), files.size() == 1 ? "" : "s")},
      {"fingerprint", fmt::format("{:016x}", data->fingerprint())},
  };
  if (!first.split().empty()) rows.insert(rows.begin() + 1, {"split", first.split()});
  fmt::print("{}", format_table(rows));
  if (!data->classes().empty()) print_classes(*data, first, args.limit);
  return static_cast<int>(Exit::ok);
}

int run_verify(const Arguments& args) {
  Rate rate("verify");
  const VerifyReport report = verify_dataset(args.data, static_cast<size_t>(args.limit), [&](int64_t done, int64_t total) { rate(done, total); });
  const double seconds = rate.finish();
  for (const std::string& complaint : report.complaints) fmt::print("{}\n", complaint);
  const int64_t bad = report.bad_samples + report.bad_files, shown = static_cast<int64_t>(report.complaints.size());
  if (bad > shown) fmt::print("… and {} more (--limit)\n", bad - shown);
  PAL_DATA_CHECK(report.good(), args.data + " is damaged", fmt::format("{} of {} samples and {} files are bad", report.bad_samples,
                 report.samples, report.bad_files), "copy or import it again");
  fmt::print("{}: {} samples, {}, all checksums, offsets and labels right ({:.1f} s)\n", args.data, report.samples,
             megabytes(report.image_bytes), seconds);
  return static_cast<int>(Exit::ok);
}

}  // namespace

int cmd_data(const std::vector<std::string>& arguments, Context&) {
  Arguments args;
  CLI::App app("Data sets: made from other formats, looked at, checked.", "pal data");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  pal data import idx /usr/share/datasets/fashion-mnist data/fashion.h5\n"
      "  pal data info data/fashion.h5\n"
      "  pal data verify data/fashion.h5");

  CLI::App& import = *app.add_subcommand("import", "Writes OUT.h5 (training split) and OUT-test.h5 from the files of another format.");
  import.add_option("FORMAT", args.format, "idx (MNIST and its kin, plain or .gz), cifar10, cifar100 (their binary versions)")
      ->required()->check(CLI::IsMember({"idx", "cifar10", "cifar100"}));
  import.add_option("SRC", args.import.source, "the folder with the files")->required();
  import.add_option("OUT", args.import.out, "x.h5; the test split goes to x-test.h5")->required();
  import.add_flag_callback("--force", [&] { args.import.overwrite = Overwrite::replace; }, "replace files that are there");
  import.add_option("--shards", args.import.shards, "files per split (x-00000-of-00004.h5, ...); 1 if not given");
  import.add_option("--classes", args.classes, "class names in the order of the labels, separated by commas");
  import.footer(
      "Examples:\n"
      "  pal data import idx /usr/share/datasets/fashion-mnist data/fashion.h5\n"
      "  pal data import cifar10 cifar-10-batches-bin data/cifar10.h5 --force\n"
      "  pal data import cifar100 cifar-100-binary data/cifar100.h5 --shards 4");

  CLI::App& info = *app.add_subcommand("info", "Shows what is in a data set.");
  CLI::App& verify = *app.add_subcommand("verify", "Reads everything and lists what is damaged (exit code 3).");
  for (CLI::App* command : {&info, &verify}) {
    command->add_option("DATA", args.data, "a .h5 file, a folder of them, or a glob in quotes")->required();
    command->add_option("--limit", args.limit, "lines of the list at most; 50 if not given")->check(CLI::NonNegativeNumber);
    command->footer(fmt::format("Examples:\n  pal data {0} data/fashion.h5\n  pal data {0} 'data/cifar100-0*.h5' --limit 100", command->get_name()));
  }
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (import.parsed()) return run_import(args);
  return info.parsed() ? run_info(args) : run_verify(args);
}

}  // namespace pal
