// cmd_oracle: `pal oracle compare|closure`: compares oracles on a labeled data set.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "core/io/cores.h"
#include "core/io/feature_file.h"
#include "core/io/sha256.h"
#include "core/setup/setup.h"
#include "core/study/offline_study.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/process/subprocess.h"
#include "launch/run/compare.h"
#include "launch/run/load_config.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

struct CompareArguments {
  std::string config, out;
  std::vector<std::string> overrides;
  int workers = io::usable_cores();
  int64_t job = -1;  // a child's: this run only
};

study::StudyData read_data(const setup::RunSpec& spec) {
  fmt::print("reading {} and {}\n", spec.data.train, spec.data.test);
  std::fflush(stdout);
  std::unique_ptr<Progress> bar;
  std::string of;
  return study::read_study_data(spec, [&](const std::string& path, int64_t done, int64_t total) {
    if (path != of) {
      bar.reset();  // ends its line
      bar = std::make_unique<Progress>("pixels " + path, total);
      of = path;
    }
    bar->update(done, "");
  });
}

// The features of both sets, once for all runs, as files in the folder; the overrides that name them. The names hold a
// sum of the contents: results of other data are not taken for results of these.
struct PreparedFeatures {
  std::vector<std::string> overrides;
  int64_t tests = 0;
};
PreparedFeatures prepare_features(const CompareArguments& args) {
  const setup::RunSpec spec = setup::make_run_spec(load_config(args.config, without_steps(args.overrides)));
  const study::StudyData data = read_data(spec);
  const int64_t tests = data.test.size(0);
  if (!data.parents.empty()) return {{}, tests};  // such a file cannot hold a taxonomy: every run reads the images
  const auto write = [&](const char* part, const at::Tensor& features, const std::vector<int64_t>& labels) {
    const at::Tensor rows = features.contiguous();
    const std::string sums = io::sha256_hex(rows.const_data_ptr(), rows.nbytes()) +
                             io::sha256_hex(labels.data(), labels.size() * sizeof(int64_t));
    const std::string path =
        fmt::format("{}/features/{}-{}.npy", args.out, part, io::sha256_hex(sums.data(), sums.size()).substr(0, 12));
    io::write_feature_file(path, {.features = rows, .labels = labels, .ids = {}, .classes = {}, .about = {}});
    return path;
  };
  return {{"data.train=" + write("train", data.train, data.train_labels),
           "data.test=" + write("test", data.test, data.test_labels), "data.limit=0", "compare.pca=0"},
          tests};
}

int compare(CompareArguments args, const std::string& program) {
  const std::vector<CompareJob> jobs = compare_jobs(args.config, args.overrides, args.out);
  if (args.job >= 0) {
    PAL_CHECK(args.job < static_cast<int64_t>(jobs.size()), "--job", args.job,
              "there are " + std::to_string(jobs.size()) + " runs");
    at::set_num_threads(1);
    const CompareJob& job = jobs[args.job];
    const setup::RunSpec spec = setup::make_run_spec(config::Config::load(args.config, job.overrides));
    write_result(job, study::run_study(spec, job.line, study::read_study_data(spec)));
    return 0;
  }
  std::error_code error;
  fs::create_directories(args.out + "/runs", error);
  fs::create_directories(args.out + "/features", error);
  PAL_CHECK(!error, "the folder cannot be created", args.out + ": " + error.message(),
            "choose a folder you may write to");
  // The runs' own names for the features, and so their fingerprints, are those that the children compute.
  const PreparedFeatures features = prepare_features(args);
  args.overrides.insert(args.overrides.end(), features.overrides.begin(), features.overrides.end());
  const std::vector<CompareJob> runs = compare_jobs(args.config, args.overrides, args.out);
  std::vector<int64_t> left;
  for (size_t k = 0; k < runs.size(); ++k) {
    if (read_result(runs[k]).empty()) left.push_back(static_cast<int64_t>(k));
  }
  if (left.size() < runs.size())
    fmt::print("{} of {} runs are complete already\n", runs.size() - left.size(), runs.size());

  std::atomic<size_t> next{0};
  std::mutex mutex;
  int64_t done = 0, failed = 0;
  {
    Progress bar("compare", static_cast<int64_t>(left.size()));
    if (!left.empty()) bar.update(0, fmt::format("runs, {} at a time", args.workers));
    const auto work = [&] {
      for (size_t k = next++; k < left.size(); k = next++) {
        std::vector<std::string> command = {program, "oracle", "compare", args.config,
                                            "--out", args.out, "--job",   std::to_string(left[k])};
        command.insert(command.end(), args.overrides.begin(), args.overrides.end());
        const int code = Subprocess(command, SubprocessOutput::inherit).wait();
        const std::lock_guard lock(mutex);
        failed += code != 0;
        bar.update(++done, runs[left[k]].line.name);
      }
    };
    std::vector<std::jthread> workers;
    for (int w = 1; w < args.workers; ++w) workers.emplace_back(work);
    work();
  }
  PAL_CHECK_CODE(Exit::check_failed, failed == 0, "runs that failed", failed,
                 "see the errors above; the same command continues from here");
  std::vector<CompareResult> results;
  CompareSet set{features.tests, {}};
  for (const CompareJob& job : runs) {
    results.push_back({job, read_result(job)});
    if (job.seed == 0 && job.noise == runs.front().noise &&
        study::starts_from_templates(setup::make_run_spec(config::Config::load(args.config, job.overrides))))
      set.labeled_at_start.push_back(job.line.name);
  }
  fmt::print("{}wrote {}/compare.csv, summary.csv and compare.svg\n", write_summary(results, set, args.out), args.out);
  return 0;
}

// The whole graph of a set, and how many questions that took.
int closure(const std::string& path, const std::vector<std::string>& overrides) {
  const setup::RunSpec spec = setup::make_run_spec(load_config(path, without_steps(overrides)));
  const study::StudyData data = read_data(spec);
  const int64_t n = data.train.size(0);
  study::Closure found;
  {
    Progress bar("closure", n * data.classes);
    found = study::run_to_closure(spec, data, [&](int64_t questions) { bar.update(questions, "questions (of N·C)"); });
  }
  const auto q = static_cast<double>(found.questions), all = static_cast<double>(n);
  fmt::print(
      "{} samples, {} classes, oracle.sampler={}, oracle.class_guess={}: {} questions in {} rounds, {:.1f} s\n"
      "  {:.3f} N; N·C = {}: {:.1f} % of it; N² = {}: {:.4f} % of it; all pairs known: {}; labels agree: {}\n",
      n, data.classes, spec.oracle.sampler, config::choice_name(oracle::kGuides, spec.oracle.class_guess),
      found.questions, found.rounds, found.seconds, q / all, n * data.classes,
      100 * q / (all * static_cast<double>(data.classes)), n * n, 100 * q / (all * all), found.complete ? "yes" : "no",
      found.right ? "yes" : "no");
  PAL_CHECK_CODE(Exit::check_failed, found.complete || spec.oracle.noise > 0,
                 "the graph is not complete after so many questions", found.questions,
                 "this sampler does not ask about everything");
  return 0;
}

}  // namespace

int cmd_oracle(const std::vector<std::string>& arguments, Context& context) {
  CLI::App app("Compares oracles on a data set whose labels are known.", "pal oracle");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  pal oracle compare configs/oracles-fashion.yaml --out figures\n  pal oracle closure "
      "configs/oracles-fashion.yaml");
  CompareArguments args;
  CLI::App& compares = *app.add_subcommand(
      "compare", "Error against questions and cost of oracles × seeds × noise levels: CSV, SVG and a table.");
  compares.add_option("CONFIG", args.config, "with compare.lines")->required();
  compares.add_option("settings", args.overrides, "section.key=value");
  compares.add_option("--out", args.out, "folder of the results; the same command continues where it was stopped")
      ->required();
  compares.add_option("--workers", args.workers, "runs at a time, each on one core")->check(CLI::Range(1, 1024));
  compares.add_option("--job", args.job)->group("");
  compares.footer("Example:\n  pal oracle compare configs/oracles-fashion.yaml --out figures compare.seeds=2");
  std::string path;
  std::vector<std::string> overrides;
  CLI::App& closes = *app.add_subcommand(
      "closure",
      "Asks until every pair of the training set is known; compares the questions it took with N, N·C and N².");
  closes.add_option("CONFIG", path, "with data.train and data.test")->required();
  closes.add_option("settings", overrides, "section.key=value");
  closes.footer("Example:\n  pal oracle closure configs/oracles-fashion.yaml oracle.class_guess=none");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (compares.parsed()) return compare(args, context.program);
  return closure(path, overrides);
}

}  // namespace pal::launch
