// import_images: writes the files of a source to shards: worker threads read and convert, the calling thread writes in
// order.
//
// Order:  x.h5.importing/ holds the journal and the staged shards. An image's line comes after its bytes, a shard's
//         after its sync, "publish" after all of them; then the shards get their names and the folder is removed. After
//         a kill at any point the next process finds a prefix of this sequence and resumes.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "core/data/image/png.h"
#include "core/data/import/import_internal.h"
#include "core/data/import/ordered_workers.h"
#include "core/data/import/split_writer.h"
#include "core/io/crc32c.h"
#include "core/io/csv.h"
#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;
constexpr const char* kUnreadable = "file that cannot be read";
constexpr double kShardBytes = 2e9;
constexpr int64_t kWindow = 128;           // images ahead of the writer: bounds the memory
constexpr size_t kJournalBytes = 1 << 20;  // the most work that a kill can cost

struct PlannedShard {
  std::string target;
  size_t split = 0;
  int64_t begin = 0, end = 0;  // images
};

// The size that all images share when all are PNG files; (0, 0, 0) otherwise.
std::vector<int32_t> common_png_shape(const ImageSource& source, const ImportOptions& options) {
  std::vector<int32_t> shape = {0, 0, 0};
  std::vector<uint8_t> file;
  for (size_t i = 0; i < source.images.size(); ++i) {
    source.read(static_cast<int64_t>(i), file);
    if (!is_png(file.data(), file.size())) return {0, 0, 0};
    const PngHeader header = inspect_png(file.data(), file.size());
    if (i == 0) shape = {header.height, header.width, header.channels};
    if (shape[0] != header.height || shape[1] != header.width) return {0, 0, 0};
    shape[2] = std::max(shape[2], header.channels);
    if (options.progress && i % 1000 == 0) options.progress(0, static_cast<int64_t>(source.images.size()));
  }
  return shape;
}

ConvertOptions choose_storage(const ImageSource& source, const ImportOptions& options) {
  ConvertOptions intake;
  intake.resize_shorter = options.resize_shorter;
  intake.quality = options.quality;
  if (options.store == StoreAs::jpeg) return intake;
  if (options.store == StoreAs::automatic) {
    const auto png_name = [](const SourceImage& image) {
      const std::string ending = fs::path(image.id).extension().string();
      return ending == ".png" || ending == ".PNG";
    };
    if (options.resize_shorter > 0 || !std::all_of(source.images.begin(), source.images.end(), png_name)) return intake;
    try {
      intake.shape = common_png_shape(source, options);
    } catch (const Error& error) {  // the reason is reported when it is this image's turn
      if (error.code() != Exit::data) throw;
    }
  } else {  // the first readable image sets the size of all others
    ConvertOptions probe = intake;
    ImageConverter first(probe);
    std::vector<uint8_t> file;
    for (size_t i = 0; i < source.images.size() && intake.shape[0] == 0; ++i) {
      source.read(static_cast<int64_t>(i), file);
      const ConvertedImage taken = first.take(file, source.images[i].id);
      if (taken.bytes.empty()) continue;
      const JpegHeader header = inspect_jpeg(taken.bytes.data(), taken.bytes.size());
      intake.shape = {header.height, header.width, header.components == 1 ? 1 : 3};
    }
    PAL_DATA_CHECK(intake.shape[0] > 0, options.source + " has no image that can be read", "", "check the files");
  }
  if (intake.shape[0] > 0) intake.encoding = Encoding::raw;
  return intake;
}

// Estimates the bytes per image from a sample spread over the source.
double mean_stored_bytes(const ImageSource& source, const ConvertOptions& options) {
  constexpr int64_t kProbes = 16;
  ImageConverter intake(options);
  std::vector<uint8_t> file;
  const auto n = static_cast<int64_t>(source.images.size());
  double sum = 0;
  for (int64_t k = 0; k < kProbes; ++k) {
    const int64_t i = k * n / kProbes;
    try {
      source.read(i, file);
      sum += static_cast<double>(intake.take(std::move(file), source.images[static_cast<size_t>(i)].id).bytes.size());
    } catch (const Error& error) {
      if (error.code() != Exit::data) throw;
    }
  }
  return sum / kProbes;
}

std::vector<PlannedShard> plan_shards(const ImageSource& source, const ImportOptions& options,
                                      const ConvertOptions& intake) {
  std::vector<PlannedShard> plan;
  const double mean = options.shards ? 0 : mean_stored_bytes(source, intake);
  for (size_t s = 0; s < source.splits.size(); ++s) {
    const SourceSplit& split = source.splits[s];
    const int64_t images = split.end - split.begin;
    const std::string name = split.name.empty() ? "" : split.name + " ";
    const int shards = options.shards.value_or(
        static_cast<int>(std::clamp<double>(mean * static_cast<double>(images) / kShardBytes + 0.5, 1,
                                            std::min<double>(static_cast<double>(images), 99999))));
    PAL_CHECK(shards >= 1 && shards <= 99999, "the number of shards is {}", shards, "give 1 to 99999");
    PAL_CHECK(shards <= images, "{} shards are more than there are " + name + "images", shards,
              "give at most " + std::to_string(images));
    const std::vector<std::string> files = planned_split(options.out, split.name, shards).files;
    for (int k = 0; k < shards; ++k) {
      plan.push_back({files[static_cast<size_t>(k)], s, split.begin + k * images / shards,
                      split.begin + (k + 1) * images / shards});
    }
  }
  return plan;
}

std::string plan_fingerprint(const ImageSource& source, const ImportOptions& options, const ConvertOptions& intake,
                             const std::vector<PlannedShard>& plan, const ShardSpec& spec) {
  std::ostringstream text;
  text << options.out << '\n'
       << options.resize_shorter << ' ' << options.quality << ' ' << static_cast<int>(intake.encoding);
  for (const int32_t side : intake.shape) text << ' ' << side;
  for (const PlannedShard& shard : plan) text << '\n' << shard.target << ' ' << shard.begin << ' ' << shard.end;
  for (const std::string& name : spec.classes) text << '\n' << name;
  for (const int64_t parent : spec.parents) text << ' ' << parent;
  for (const std::string& name : spec.parent_names) text << '\n' << name;
  const std::string head = text.str();
  uint32_t low = io::crc32c(head.data(), head.size()), high = io::crc32c_portable("pal", 3, low);
  for (const SourceImage& image : source.images) {  // two sums of different order: 64 bits
    const int64_t numbers[] = {image.label, static_cast<int64_t>(image.bytes), image.changed};
    low = io::crc32c(image.id.data(), image.id.size(), io::crc32c(numbers, sizeof numbers, low));
    high = io::crc32c(numbers, sizeof numbers, io::crc32c(image.id.data(), image.id.size(), high));
  }
  return std::to_string(source.images.size()) + " " + std::to_string(low) + " " + std::to_string(high);
}

// Gathers the report, image by image in order.
class Reporter {
 public:
  Reporter(const ImageSource& source, const std::string& out, const std::vector<PlannedShard>& plan,
           const ShardSpec& spec)
      : source_(source) {
    report_.classes = spec.classes;
    report_.ignored = source.ignored;
    report_.notes = source.notes;
    note_case(spec.classes);
    for (const SourceSplit& split : source.splits) report_.splits.push_back(planned_split(out, split.name, 1));
    for (ImportedSplit& split : report_.splits) split.files.clear();
    for (const PlannedShard& shard : plan) report_.splits[shard.split].files.push_back(shard.target);
  }

  void add(int64_t i, size_t split, const JournalImage& image) {
    const std::string& id = source_.images[static_cast<size_t>(i)].id;
    report_.source_bytes += static_cast<int64_t>(source_.images[static_cast<size_t>(i)].bytes);
    if (image.bytes > 0) {
      ++report_.splits[split].samples;
      report_.splits[split].image_bytes += static_cast<int64_t>(image.bytes);
    }
    for (const Oddity& oddity : image.oddities) {
      OddCount& count = odd_[{-static_cast<int>(oddity.treatment), oddity.kind()}];
      if (count.images++ == 0) count = {oddity.kind(), treatment_name(oddity.treatment), 1, id};
      if (oddity.treatment != Treatment::left_out) continue;
      if (++report_.left_out == 1) first_left_out_ = sentence_of(id, oddity);
      quarantine_ += io::csv_field(id) + "," + io::csv_field(oddity.what) + "\n";
    }
  }

  const std::vector<ImportedSplit>& splits() const { return report_.splits; }
  const std::string& first_left_out() const { return first_left_out_; }
  // The skipped images and the reasons; empty: none.
  std::string quarantine() const { return quarantine_.empty() ? "" : "file,reason\n" + quarantine_; }
  ImportReport finish(const std::string& quarantine_path) {
    for (auto& [key, count] : odd_) report_.odd.push_back(std::move(count));
    if (!quarantine_.empty()) report_.quarantine = quarantine_path;
    return std::move(report_);
  }
  void count_resumed(int64_t samples) { report_.resumed += samples; }

 private:
  // A file that cannot be read is named in the text of its error.
  static std::string sentence_of(const std::string& id, const Oddity& oddity) {
    if (oddity.kind() != kUnreadable) return id + ": " + oddity.what;
    const std::string error = oddity.what.substr(std::string(kUnreadable).size() + 2);
    return error.substr(0, error.find("; "));
  }

  // "Cat" and "cat" are two classes, which is seldom meant.
  void note_case(const std::vector<std::string>& classes) {
    std::map<std::string, std::string> seen;
    for (const std::string& name : classes) {
      std::string lower = name;
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const auto [found, is_new] = seen.emplace(lower, name);
      if (!is_new)
        report_.notes.push_back("two classes differ in upper and lower case only: " + found->second + " and " + name +
                                "; rename one of them if they are the same");
    }
  }

  const ImageSource& source_;
  ImportReport report_;
  std::map<std::pair<int, std::string>, OddCount> odd_;
  std::string quarantine_, first_left_out_;
};

class ImageImport {
 public:
  ImageImport(const ImageSource& source, const ImportOptions& options, ShardSpec spec)
      : source_(source),
        options_(options),
        spec_(std::move(spec)),
        intake_(choose_storage(source, options)),
        plan_(plan_shards(source, options, intake_)),
        quarantine_(options.out.substr(0, options.out.size() - 3) + "-quarantine.csv"),
        journal_(options.out + ".importing", plan_fingerprint(source, options, intake_, plan_, spec_)),
        reporter_(source, options.out, plan_, spec_) {
    spec_.encoding = intake_.encoding;
    spec_.shape = intake_.encoding == Encoding::raw ? intake_.shape : std::vector<int32_t>{0, 0, 0};
  }

  ImportReport run() {
    if (!journal_.publishing()) {
      try {
        for (const ImportedSplit& split : reporter_.splits()) check_outputs(split, options_.overwrite);
      } catch (...) {
        if (journal_.images().empty()) journal_.remove();
        throw;
      }
      for (size_t k = 0; k < plan_.size(); ++k) write_shard(k);
    } else {
      for (const PlannedShard& shard : plan_) report_known(shard, shard.end);
    }
    publish();
    return reporter_.finish(quarantine_);
  }

 private:
  void report_progress(int64_t done) const {
    if (options_.progress) options_.progress(done, static_cast<int64_t>(source_.images.size()));
  }

  std::string staged(const std::string& target) const {
    return (fs::path(journal_.folder()) / fs::path(target).filename()).string();
  }

  void report_known(const PlannedShard& shard, int64_t end) {
    for (int64_t i = shard.begin; i < end; ++i)
      reporter_.add(i, shard.split, journal_.images()[static_cast<size_t>(i)]);
    reporter_.count_resumed(end - shard.begin);
  }

  // Restores the part of the shard that the journal lists; returns the first image that is still to be done.
  int64_t restore(ShardWriter& writer, const PlannedShard& shard) {
    const auto known = std::min(shard.end, static_cast<int64_t>(journal_.images().size()));
    int64_t i = shard.begin;
    for (; i < known; ++i) {
      const JournalImage& image = journal_.images()[static_cast<size_t>(i)];
      const SourceImage& from = source_.images[static_cast<size_t>(i)];
      if (image.bytes > 0 && !writer.restore(image.bytes, image.crc, from.label, from.id)) break;
    }
    if (i < static_cast<int64_t>(journal_.images().size())) journal_.forget_from(i);
    report_known(shard, i);
    return i;
  }

  void write_shard(size_t k) {
    const PlannedShard& shard = plan_[k];
    if (static_cast<int64_t>(k) < journal_.finished_shards()) {
      PAL_DATA_CHECK(fs::exists(staged(shard.target)), "a shard of the interrupted import is missing",
                     staged(shard.target), "remove " + journal_.folder() + " and import again");
      return report_known(shard, shard.end);
    }
    ShardSpec spec = spec_;
    spec.split = source_.splits[shard.split].name;
    ShardWriter writer = ShardWriter::staged(staged(shard.target), shard.target, spec);
    const int64_t first = restore(writer, shard);
    report_progress(first);
    const auto make_worker = [&] {
      return [this, intake = std::make_shared<ImageConverter>(intake_)](int64_t i) {
        std::vector<uint8_t> file;
        const std::string& id = source_.images[static_cast<size_t>(i)].id;
        try {
          source_.read(i, file);
        } catch (const Error& error) {
          if (error.code() != Exit::data) throw;
          return ConvertedImage{{}, {{Treatment::left_out, std::string(kUnreadable) + ": " + error.what()}}, 0};
        }
        ConvertedImage taken = intake->take(std::move(file), id);
        taken.crc = io::crc32c(taken.bytes.data(), taken.bytes.size());
        return taken;
      };
    };
    ordered_for<ConvertedImage>(
        options_.threads, first, shard.end, kWindow, make_worker, [&](int64_t i, ConvertedImage taken) {
          const SourceImage& from = source_.images[static_cast<size_t>(i)];
          const JournalImage image{taken.bytes.size(), taken.crc, std::move(taken.oddities)};
          if (writer.waiting_bytes() + taken.bytes.size() > kJournalBytes) {
            writer.flush();
            journal_.flush();  // of the images before this one, which are in the file now
          }
          if (image.bytes > 0) writer.append({taken.bytes.data(), taken.bytes.size(), from.label, from.id, taken.crc});
          journal_.append(image);
          reporter_.add(i, shard.split, image);
          if (i % 100 == 99 || i + 1 == shard.end) report_progress(i + 1);
        });
    PAL_DATA_CHECK(reporter_.splits()[shard.split].samples > 0, "no image of " + options_.source + " can be read",
                   reporter_.first_left_out(), "paths in a list or CSV file are relative to its folder");
    writer.finish();
    journal_.finish_shard();
  }

  void publish() {
    journal_.begin_publishing();
    std::set<std::string> folders;
    for (const PlannedShard& shard : plan_) {
      if (fs::exists(staged(shard.target))) io::rename_path(staged(shard.target), shard.target);
      PAL_DATA_CHECK(fs::exists(shard.target), "a shard of the interrupted import is missing", shard.target,
                     "import again");
      folders.insert((fs::path(".") / fs::path(shard.target).parent_path()).string());
    }
    for (const ImportedSplit& split : reporter_.splits()) remove_others(split);
    const std::string left_out = reporter_.quarantine();
    if (left_out.empty()) {
      fs::remove(quarantine_);  // left by an earlier import
    } else {
      io::write_file_atomically(staged(quarantine_), left_out);
      io::rename_path(staged(quarantine_), quarantine_);
    }
    for (const std::string& folder : folders) io::sync_folder(folder);
    journal_.remove();
  }

  const ImageSource& source_;
  const ImportOptions& options_;
  ShardSpec spec_;
  const ConvertOptions intake_;
  const std::vector<PlannedShard> plan_;
  const std::string quarantine_;  // the list of skipped images
  ImportJournal journal_;
  Reporter reporter_;
};

}  // namespace

ImportReport import_images(std::unique_ptr<ImageSource> whole, const ImportOptions& options) {
  PAL_CHECK(options.threads >= 1, "--threads is {}", options.threads, "give 1 or more");
  PAL_CHECK(options.quality >= 1 && options.quality <= 100, "--quality is {}", options.quality, "give 1 to 100");
  PAL_CHECK(options.resize_shorter >= 0, "--resize-shorter is {}", options.resize_shorter,
            "give the pixels of the shorter side");
  for (const SourceSplit& split : whole->splits) {
    PAL_DATA_CHECK(split.begin < split.end,
                   "the source holds no images" + (split.name.empty() ? "" : " for " + split.name), options.source,
                   "check the source and the format's name");
  }
  const std::unique_ptr<ImageSource> divided = with_test_split(std::move(whole), options);
  const ImageSource& source = *divided;
  ShardSpec spec;
  spec.classes = source.classes;
  if (!options.classes.empty()) {
    PAL_CHECK(options.classes.size() == source.classes.size(), "{} class names are given", options.classes.size(),
              "the source has " + std::to_string(source.classes.size()) + " classes");
    spec.classes = options.classes;
  }
  if (!options.parents.empty()) {
    Taxonomy tree = read_taxonomy(options.parents, spec.classes);
    spec.parents = std::move(tree.parents);
    spec.parent_names = std::move(tree.names);
  }
  return ImageImport(source, options, std::move(spec)).run();
}

}  // namespace pal::data
