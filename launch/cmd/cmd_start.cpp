// cmd_start: pal start FOLDER: from a folder of pictures to a trained, evaluated encoder and the labeling page.
//
// Each stage is a command of this program, printed as a user would type it. A stage whose result is there is skipped,
// so the same command resumes, and uses the answers that people gave since.
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/data/dataset.h"
#include "core/eval/diagnostics.h"
#include "core/io/files.h"
#include "core/io/json.h"
#include "core/loss/spec.h"
#include "core/oracle/ledger/inbox.h"
#include "core/record/checkpoint_folder.h"
#include "core/record/metrics_reader.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/label/server.h"
#include "launch/run/device_option.h"
#include "launch/run/folder_run.h"
#include "launch/run/run_summary.h"
#include "launch/run/trained_run.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int64_t kMostPixelImages = 200'000;  // their pixels are held in memory
constexpr int32_t kPixelSide = 32;

struct StartArguments {
  FolderRun folder;
  int64_t classes = 0;
  std::string device;
  bool no_label = false;

  // For a command that computes with the encoder.
  Words on_device(Words words) const {
    if (device != "auto") words.insert(words.end(), {"--device", device});
    return words;
  }
};

// Runs a stage; the exit code with which `pal start` ends, or 0.
int stage(const FolderRun& folder, const Words& words) {
  const CommandEnd end = run_pal(folder.program, words);
  return end.code != 0 || end.stopped_by == 0 ? end.code : 128 + end.stopped_by;
}

// Answers that no training step has used yet.
struct WaitingAnswers {
  int64_t answers = 0;
  int64_t rounds = 0;  // recorded in the ledger: answers take effect after them
};
WaitingAnswers waiting_answers(const std::string& run, int64_t trained) {
  const std::string path = run + "/ledger.sqlite";
  if (!fs::exists(path)) return {};
  oracle::Ledger ledger(path, oracle::kAnyRun);
  std::vector<std::string> warnings;
  oracle::Inbox(run).drain(ledger, warnings);
  for (const std::string& w : warnings) fmt::print(stderr, "warning: {}\n", printable(w));
  WaitingAnswers waiting{static_cast<int64_t>(ledger.to_decide().size()), ledger.rounds()};
  for (const oracle::Decision& d : ledger.decisions()) waiting.answers += d.effective_step >= trained;
  return waiting;
}

int64_t newest_step(const std::string& run) {
  const std::vector<int64_t> steps = record::checkpoint_steps(run);
  return steps.empty() ? -1 : steps.front();
}

// Trains to the end of the run; trains a finished run further when there are answers that it has not used.
int train(const FolderRun& folder) {
  const std::string run = folder.out;
  const setup::RunSpec asked = setup::make_run_spec(config::Config::load(folder.config(), {}));
  const int64_t done = newest_step(run);
  const setup::RunSpec spec = done >= 0 ? run_spec(run) : asked;
  Words words = {"train", folder.config()};
  if (spec.train.steps) {
    int64_t steps = std::max(*spec.train.steps, asked.train.steps.value_or(0));
    if (done >= steps) {
      const WaitingAnswers waiting = waiting_answers(run, done);
      if (waiting.answers == 0) {
        fmt::print("trained already: {} steps, and no new answers\n", done);
        return 0;
      }
      const double seconds = seconds_per_step(summarize_run(run));
      const int64_t images = data::Dataset::open(spec.data.train)->size();
      steps = std::max(done, waiting.rounds * spec.oracle.every) +
              steps_for(folder.minutes, seconds, images, spec.train.global_batch);
      fmt::print("{} new answers: the run continues to step {}\n", waiting.answers, steps);
    }
    if (steps != asked.train.steps) words.push_back("train.steps=" + std::to_string(steps));
  }
  words.insert(words.end(), folder.overrides.begin(), folder.overrides.end());
  words.insert(words.end(), {"--run-dir", run, "--np", std::to_string(folder.ranks)});
  if (const int code = stage(folder, words); code != 0) return code;
  // A run that was stopped in between is not timed: its file has the time since the last start.
  constexpr double kLate = 1.25;
  const double took = record::read_metrics(run + "/metrics.jsonl").seconds;
  if (done < 0 && took > kLate * 60 * folder.minutes)
    fmt::print(
        "the training took {} instead of {}: its steps were slower than the measured ones, or 20 steps, the fewest, "
        "take longer\n",
        format_seconds(took), format_seconds(60 * folder.minutes));
  return 0;
}

// Accuracy in a file of `pal eval`; NaN for a method that is not in it.
struct Scores {
  double linear = std::nan(""), knn = std::nan("");
  double low = 0;  // of the better one's 95 % interval
  int64_t test = 0, step = -1;
  double best() const { return std::fmax(linear, knn); }
};
Scores read_scores(const std::string& file) {
  Scores scores;
  if (!fs::exists(file)) return scores;
  const auto value = io::parse_json(io::read_whole_file(file));
  if (!value.is_object() || !value.contains("results")) return scores;
  scores.step = value.value("step", int64_t{-1});
  for (const auto& result : value["results"]) {
    const std::string method = result.value("method", std::string());
    if (method != "linear" && method != "knn") continue;
    (method == "linear" ? scores.linear : scores.knn) = result.value("top1", std::nan(""));
    if (scores.best() == result.value("top1", std::nan(""))) scores.low = result.value("low", 0.0);
    scores.test = result.value("test", int64_t{0});
  }
  return scores;
}

// Whether `file` is missing, or older than a source that is there.
bool is_older(const std::string& file, const std::string& source) {
  return !fs::exists(file) || (fs::exists(source) && fs::last_write_time(file) < fs::last_write_time(source));
}

std::string pixel_file(const FolderRun& folder) { return folder.out + "/pixels.json"; }

// The run, and raw pixels beside it; only what is missing or older than its source.
int evaluate(const StartArguments& args, const setup::RunSpec& spec) {
  const FolderRun& folder = args.folder;
  if (read_scores(folder.out + "/eval.json").step != newest_step(folder.out)) {
    if (const int code = stage(folder, args.on_device({"eval", folder.out, "linear", "knn"})); code != 0) return code;
  }
  const std::string pixels = pixel_file(folder);
  if (!is_older(pixels, folder.config())) return 0;
  if (data::Dataset::open(spec.data.train)->size() > kMostPixelImages) return 0;
  std::string config = folder.config();
  if (spec.augment.size > kPixelSide) {
    config = folder.out + "/pixels.yaml";
    io::write_file_atomically(config, fmt::format("# The baseline: pixels of pictures reduced to {0}x{0}.\n"
                                                  "base: start.yaml\ndata:\n  size: {0}\n",
                                                  kPixelSide));
  }
  const int code = stage(folder, {"eval", config, "linear", "knn", "--features", "pixels", "--json", pixels});
  return code > 128 ? code : 0;  // the report does not need the baseline
}

// The kind of collapse of the embeddings, by the median of the last logged steps; "": no collapse.
std::string collapse_of(const setup::RunSpec& spec, const std::string& run) {
  const record::RunMetrics metrics = record::read_metrics(run + "/metrics.jsonl");
  const auto last = [&](const std::string& name) {
    std::vector<double> values = record::metric_curve(metrics, name).y;
    values.erase(values.begin(), values.end() - std::min<ptrdiff_t>(5, std::ssize(values)));
    std::sort(values.begin(), values.end());
    return values.empty() ? std::numeric_limits<double>::infinity() : values[values.size() / 2];
  };
  constexpr double kShrunk = 0.05;  // VICReg's variance term aims at 1
  const double spread = last("column_std");
  if (spec.loss.kind == loss::LossKind::vicreg && spread < kShrunk)
    return fmt::format("they have shrunk to a point (standard deviation {:.2g} of a column)", spread);
  return eval::collapse_text(last("unit_std"), last("effective_rank"),
                             spec.model.projector.empty() ? 3 : spec.model.projector.back());
}

void print_scores(const FolderRun& folder) {
  const Scores run = read_scores(folder.out + "/eval.json"), pixels = read_scores(pixel_file(folder));
  const auto percent = [](double share) { return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-"; };
  fmt::print("\n{}", format_table({{"features", "linear %", "kNN %"},
                                   {"raw pixels", percent(pixels.linear), percent(pixels.knn)},
                                   {"this run", percent(run.linear), percent(run.knn)}}));
  if (!std::isfinite(pixels.best())) return;
  const double gain = 100 * (run.best() - pixels.best());
  if (gain > 0 && run.low > pixels.best())
    fmt::print("The encoder is {:.1f} points above raw pixels on {} test images.\n", gain, run.test);
  else if (gain > 0)
    fmt::print("The encoder is {:.1f} points above raw pixels, within the noise of {} test images.\n", gain, run.test);
  else
    fmt::print(
        "The encoder is NOT above raw pixels ({:.1f} points) on {} test images: it has learned nothing that the pixels "
        "do not show. Give it more time (--minutes {:g}), more images, or answers (pal help label).\n",
        gain, run.test, std::max(30.0, 4 * folder.minutes));
}

// Whether a server may listen at this port of this machine.
bool is_free(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(descriptor);
  return bound;
}

int serve_page(const StartArguments& args, const setup::RunSpec& spec) {
  const FolderRun& folder = args.folder;
  const auto data = data::Dataset::open(spec.data.train);
  const auto labeled = std::count_if(data->labels().begin(), data->labels().end(), [](int64_t l) { return l >= 0; });
  Words words = {"label", folder.out, "oracle.sampler=captcha"};
  if (args.classes > 0 && labeled == 0) {
    // One sample near each center of k-means finds the classes; then captcha.
    const int64_t first = 4 * args.classes;
    words[2] = "oracle.sampler=mix";
    words.push_back(fmt::format(
        "oracle.mix=[{{sampler: pruning, share: 1, until: {0}}}, {{sampler: captcha, share: 1, from: {0}}}]", first));
    words.push_back(fmt::format("oracle.clusters={}", args.classes));
  }
  if (!is_free(ServerOptions().port)) words.insert(words.end(), {"--port", "0"});
  const int code = run_pal(folder.program, args.on_device(words)).code;
  if (code == 0) fmt::print("the same `pal start` continues with the answers\n");
  return code;
}

int start(StartArguments& args) {
  FolderRun& folder = args.folder;
  PAL_DATA_CHECK(newest_step(folder.out) >= 0 || !has_finished(folder.out),
                 "the run is finished, but its checkpoints are gone", folder.out,
                 "put them back, or give --out OTHER to train anew");
  if (const int code = prepare_folder(folder); code != 0) return code;
  const setup::RunSpec spec = setup::make_run_spec(config::Config::load(folder.config(), {}));
  if (const int code = train(folder); code != 0) return code;
  const bool tested = !spec.data.test.empty();
  if (tested) {
    if (const int code = evaluate(args, spec); code != 0) return code;
  }
  const std::string report = folder.out + "/report.html";
  if (is_older(report, folder.out + "/metrics.jsonl") || is_older(report, folder.out + "/eval.json")) {
    if (const int code = stage(folder, args.on_device({"report", folder.out, "--out", report})); code != 0) return code;
  }
  if (tested) print_scores(folder);
  fmt::print("The report is {}\n", report);
  const std::string collapsed = collapse_of(spec, folder.out);
  PAL_CHECK_CODE(
      Exit::numerics, collapsed.empty(), "the embeddings have collapsed", collapsed,
      fmt::format("this encoder is of no use: lower optim.lr or raise loss.variance in {0}, and train again: pal "
                  "train {0} --run-dir OTHER",
                  folder.config()));
  if (!spec.oracle.asks()) {  // a page would show nothing
    fmt::print("{}\n",
               spec.graph.groups.empty()
                   ? "Every image has a label, so no question is open. To be asked about images, put them beside "
                     "the folders of the classes, and give --out OTHER."
                   : "With --groups and a label for every image people are not asked (pal help start).");
    return static_cast<int>(Exit::ok);
  }
  if (args.no_label || isatty(STDOUT_FILENO) == 0) {
    fmt::print("To answer questions: the same `pal start` in a terminal, without --no-label\n");
    return static_cast<int>(Exit::ok);
  }
  return serve_page(args, spec);
}

}  // namespace

int cmd_start(const std::vector<std::string>& arguments, Context& context) {
  StartArguments args;
  FolderRun& folder = args.folder;
  folder.program = context.program;
  CLI::App app("From a folder of pictures to a trained, evaluated encoder, a report and the labeling page.",
               "pal start");
  app.add_option("FOLDER", folder.folder, "folder of JPEG or PNG files, nested in any way; sub-folders are classes")
      ->required();
  app.add_option(
      "--groups", folder.options.groups,
      "FILE:COLUMN of a CSV file; images of one value (a patient, a scene) are related and stay in one split");
  app.add_option("--labels", folder.options.labels,
                 "a CSV file (image,label) or FILE:COLUMN instead of sub-folders; none: no labels");
  app.add_option("--classes", args.classes,
                 "number of classes to expect where no label is known, for the first questions")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20));
  app.add_option("--out", folder.out, "folder of all results; default runs/<name of the folder>");
  app.add_option("--np", folder.ranks, "number of ranks; default: one per GPU, else one per core, at most four")
      ->check(CLI::Range(1, 4096));
  app.add_option("--minutes", folder.minutes, "time to train")->check(CLI::Range(0.01, 1e6))->capture_default_str();
  add_device_option(app, args.device);
  app.add_flag("--no-label", args.no_label, "end after the report instead of serving the labeling page");
  app.footer(
      "Every stage is a command of pal, which is printed. The same command resumes, or continues with the answers.\n"
      "Examples:\n"
      "  pal start photos\n"
      "  pal start scans --groups meta.csv:patient_id --labels meta.csv:diagnosis\n"
      "  pal start photos --labels none --minutes 120 --out runs/long --no-label");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (folder.out.empty()) folder.out = default_out(folder.folder);
  if (args.device != "auto") folder.overrides = {"train.device=" + args.device};
  if (args.device == "cuda") context.start_world().use_device(args.device, "--device");  // no GPU: an error now
  return start(args);
}

}  // namespace pal::launch
