#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <thread>

#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/cmd/internal.h"
#include "launch/process/signals.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct Importer {
  const char* format;
  data::ImportReport (*run)(const data::ImportOptions&);
  enum Kind { pixels, files } kind;  // files: image files, whose import can be resumed
};
constexpr Importer kImporters[] = {{"folder", data::import_folder, Importer::files},
                                   {"images", data::import_flat, Importer::files},
                                   {"csv", data::import_csv, Importer::files},
                                   {"webdataset", data::import_webdataset, Importer::files},
                                   {"h5", data::import_h5, Importer::files},
                                   {"idx", data::import_idx, Importer::pixels},
                                   {"cifar10", data::import_cifar10, Importer::pixels},
                                   {"cifar100", data::import_cifar100, Importer::pixels}};

// Ctrl-C or the end of a job must not leave half-written files: the signals are blocked, and progress calls raise(),
// which throws so that the importer removes its files. The destructor unblocks the signal, which then ends the process.
class DeferredSignals {
 public:
  DeferredSignals() = default;
  ~DeferredSignals() { signals_.restore(); }
  DeferredSignals(const DeferredSignals&) = delete;

  void raise(const char* left) const {
    if (signals_.pending()) throw Error(Exit::check_failed, std::string("stopped by a signal; ") + left);
  }

 private:
  const BlockedSignals signals_{SIGINT, SIGTERM, SIGHUP};
};

std::string first_and_count(const std::vector<std::string>& files) {
  return files.size() == 1 ? files[0] : fmt::format("{} … ({} shards)", files[0], files.size());
}

void print_report(const data::ImportReport& report, double seconds) {
  int64_t samples = 0, bytes = 0;
  std::vector<std::vector<std::string>> rows = {{"split", "samples", "classes", "images", "file"}};
  for (const data::ImportedSplit& split : report.splits) {
    samples += split.samples;
    bytes += split.image_bytes;
    rows.push_back({split.name.empty() ? "all" : split.name, std::to_string(split.samples),
                    std::to_string(report.classes.size()), megabytes(split.image_bytes), first_and_count(split.files)});
  }
  fmt::print("{}", format_table(rows));
  if (!report.odd.empty()) {
    std::vector<std::vector<std::string>> odd = {{"images", "finding", "treatment", "for example"}};
    for (const data::OddCount& count : report.odd)
      odd.push_back({std::to_string(count.images), count.kind, count.treatment, count.example});
    fmt::print("\n{}", format_table(odd));
  }
  const bool unread = std::any_of(report.odd.begin(), report.odd.end(),
                                  [](const data::OddCount& count) { return count.kind.ends_with(" is not read"); });
  if (unread)
    fmt::print(
        "PAL reads JPEG and PNG; convert the others first, for instance with ImageMagick: "
        "mogrify -format png *.webp\n");
  if (!report.ignored.empty()) {
    std::string list;
    for (const auto& [what, count] : report.ignored)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, printable(what));
    fmt::print("skipped files that are not images: {}\n", list);
  }
  for (const std::string& note : report.notes) fmt::print("{}\n", printable(note));
  if (report.left_out > 0)
    fmt::print("{} left out; {} lists them with the reasons\n", report.left_out, report.quarantine);
  if (report.resumed > 0) fmt::print("{} images come from an interrupted import\n", report.resumed);
  fmt::print("{} images in {:.1f} s ({:.0f} images/s, {:.0f} MB/s); show them with: pal data info {}\n", samples,
             seconds, static_cast<double>(samples - report.resumed) / seconds,
             static_cast<double>(bytes) / 1e6 / seconds, report.splits[0].data);
}

// A line every few seconds while a large folder is listed: the number of its files is not known yet.
class ListingLine {
 public:
  void operator()(int64_t files) {
    const Clock::time_point now = Clock::now();
    if (now - last_ < std::chrono::seconds(3)) return;
    last_ = now;
    fmt::print("listing: {} files so far\n", files);
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace

int run_data_import(DataImport wanted) {
  std::istringstream names(wanted.classes);
  for (std::string name; std::getline(names, name, ',');) wanted.options.classes.push_back(name);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit then fails the write instead of killing the process
  const auto* importer = std::find_if(std::begin(kImporters), std::end(kImporters),
                                      [&](const Importer& i) { return wanted.format == i.format; });
  const char* left = importer->kind == Importer::files ? "the same command resumes here" : "nothing was written";
  const DeferredSignals signals;
  ProgressRate rate("import");
  ListingLine listing;
  wanted.options.progress = [&](int64_t done, int64_t total) {
    signals.raise(left);
    if (total > 0)
      rate(done, total);
    else
      listing(done);
  };
  PAL_CHECK(importer->kind == Importer::files || wanted.options.test_fraction == 0,
            "this format has a test split of its own", wanted.format, "leave --test-fraction out");
  const data::ImportReport report = importer->run(wanted.options);
  print_report(report, std::max(rate.finish(), 1e-9));
  return static_cast<int>(Exit::ok);
}

void add_import_options(CLI::App& command, DataImport& import) {
  std::vector<std::string> formats;
  for (const Importer& importer : kImporters) formats.push_back(importer.format);
  data::ImportOptions& options = import.options;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  command
      .add_option("FORMAT", import.format,
                  "folder (one folder per class; train and test or val above them: both splits), images (a flat "
                  "folder or a list, without "
                  "labels), csv (path,label,...), webdataset (.tar), h5 (of other libraries), idx (MNIST-like, "
                  "plain or .gz), cifar10, "
                  "cifar100 (their binary versions)")
      ->required()
      ->check(CLI::IsMember(formats));
  command.add_option("SRC", options.source, "the folder or file with the images")->required();
  command
      .add_option("OUT", options.out,
                  "x.h5; a test split goes to x-test.h5, the list of skipped images to x-quarantine.csv")
      ->required();
  command.add_flag_callback(
      "--force", [&] { options.overwrite = data::Overwrite::replace; }, "replace existing files");
  command.add_option_function<int>(
      "--shards", [&](const int& n) { options.shards = n; },
      "number of files per split (x-00000-of-00004.h5, ...); default: files of about 2 GB");
  command.add_option("--classes", import.classes, "class names in the order of the labels, separated by commas");
  command.add_option("--threads", options.threads,
                     "threads that read and convert; default: one per core. The result does not depend on it");
  command.add_option("--resize-shorter", options.resize_shorter,
                     "reduce larger images until the shorter side has this many pixels");
  command.add_option("--quality", options.quality, "quality of the JPEG files that are written, 1 to 100; default 95");
  command
      .add_option_function<std::string>(
          "--store",
          [&](const std::string& how) {
            options.store = how == "jpeg"  ? data::StoreAs::jpeg
                            : how == "raw" ? data::StoreAs::raw
                                           : data::StoreAs::automatic;
          },
          "jpeg, raw (pixels; all images of one size), or auto: raw for PNG files of one size (lossless), "
          "jpeg otherwise")
      ->check(CLI::IsMember({"auto", "jpeg", "raw"}));
  command.add_option("--labels", options.labels, "a CSV file: image,label");
  command.add_option("--label-column", options.label_column, "name of the CSV column that holds the labels");
  command.add_option("--path-column", options.path_column, "name of the CSV column that holds the paths");
  command.add_option("--test-fraction", options.test_fraction,
                     "share of the images of each class that becomes the test split, x-test.h5, for instance 0.2");
  command.add_option("--groups", options.groups,
                     "FILE:COLUMN of a CSV file; images of one value (a patient, a scene) stay in one split");
  command.add_option("--split-seed", options.split_seed, "seed of that split; default 0");
  command.add_option("--parents", options.parents,
                     "the tree above the classes: a CSV file (child,parent), or wordnet for classes named by wnid");
  command.footer(
      "JPEG files are copied unchanged, unless a smaller size is requested, they are CMYK, or their Exif orientation "
      "is not upright.\n"
      "The same command resumes a killed import.\n"
      "Examples:\n"
      "  pal data import folder ILSVRC/train data/imagenet.h5 --resize-shorter 256 --parents wordnet\n"
      "  pal data import folder photos data/photos.h5 --test-fraction 0.2\n"
      "  pal data import csv birds.csv data/birds.h5 --shards 4\n"
      "  pal data import idx /usr/share/datasets/fashion-mnist data/fashion.h5");
}

}  // namespace pal::launch
