// cmd_reproduce: pal reproduce NAME: trains the runs behind a table and prints it beside the published one. Resumable.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/io/cores.h"
#include "core/io/files.h"
#include "core/io/json.h"
#include "core/record/metrics_reader.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/process/mpirun.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct ReproduceArguments {
  std::string name, data, out, configs = "configs";
  int ranks = 2;
  int64_t seeds = 3;
  bool fast = false;
};

// A line of a table.
struct Arm {
  std::string name, supervision;  // "600 labels"
  Words settings;
  std::string published = "-";
};

// A table: its arms on one config and one data set.
struct Study {
  std::string config;
  Words shared;  // settings of every arm
  std::vector<Arm> arms;
  std::string features;  // that pal eval uses: backbone or projector
};

struct Result {
  std::vector<double> linear, knn;  // by seed
};

struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread_of(const std::vector<double>& values) {
  Spread s;
  for (const double v : values) s.mean += v / static_cast<double>(values.size());
  for (const double v : values) s.deviation += (v - s.mean) * (v - s.mean);
  s.deviation = values.size() > 1 ? std::sqrt(s.deviation / static_cast<double>(values.size() - 1)) : 0;
  return s;
}
std::string spread_text(const std::vector<double>& values) {
  const Spread s = spread_of(values);
  return values.size() > 1 ? fmt::format("{:.2f} ± {:.2f}", 100 * s.mean, 100 * s.deviation)
                           : fmt::format("{:.2f}", 100 * s.mean);
}

// ---- the studies ----------------------------------------------------------------------------------------------------

Study fashion_study(const ReproduceArguments& args) {
  Study s;
  s.config = args.configs + "/quickstart.yaml";
  s.features = "backbone";
  const std::string test = fs::path(args.data).replace_extension().string() + "-test.h5";
  s.shared = {"data.train=" + args.data, "data.test=" + test, "checkpoint.every=200"};
  const int64_t steps = args.fast ? 24 : 400, every = args.fast ? 4 : 20;
  s.shared.push_back("train.steps=" + std::to_string(steps));
  if (args.fast) {
    s.shared.insert(s.shared.end(), {"data.limit=8000", "train.global_batch=128", "eval.every=" + std::to_string(steps),
                                     "eval.train_samples=2000", "eval.test_samples=1000", "oracle.pool=2000"});
  }
  const auto mixed = [](const char* share) -> Words {
    return {"graph.kind=mixed", "graph.alpha=0.1", "graph.edge_share=0.5",
            std::string("graph.labeled_fraction=") + share};
  };
  const auto captcha = [&](int64_t budget) {
    Words words = mixed("0");
    // All asked by two thirds of the run.
    const int64_t rounds = std::max<int64_t>(1, steps * 2 / 3 / every);
    words.insert(words.end(), {"oracle.sampler=captcha", fmt::format("oracle.budget={}", budget),
                               fmt::format("oracle.every={}", every),
                               fmt::format("oracle.questions_per_round={}", (budget + rounds - 1) / rounds)});
    return words;
  };
  // One column per class: columns without a class would only train the head to output 0.
  const auto baseline = [](const char* loss) -> Words {
    return {"graph.kind=supervised", std::string("loss.kind=") + loss, "model.projector=[256, 256, 10]"};
  };
  s.arms = {{"ssl", "0 labels", {"graph.kind=ssl"}},
            {"mixed, 1 %", args.fast ? "80 labels" : "600 labels", mixed("0.01")},
            {"mixed, 10 %", args.fast ? "800 labels" : "6,000 labels", mixed("0.1")},
            {"supervised graph", "all labels", {"graph.kind=supervised"}},
            {"baseline MSE", "all labels", baseline("mse")},
            {"baseline cross-entropy", "all labels", baseline("cross_entropy")}};
  for (const int64_t budget : args.fast ? std::vector<int64_t>{60, 200, 600} : std::vector<int64_t>{600, 6000, 24000})
    s.arms.push_back({fmt::format("captcha, {}", budget), fmt::format("{} questions", budget), captcha(budget)});
  return s;
}

Study cifar_study(const ReproduceArguments& args) {
  Study s;
  s.config = args.configs + "/cifar10-paper.yaml";
  s.features = "projector";  // the paper fits its linear layer on the K = 16 outputs
  s.shared = {"data.train=" + args.out + "/cifar10.h5", "data.test=" + args.out + "/cifar10-test.h5"};
  const auto epochs = [](const char* n, Words words) {
    words.push_back(std::string("train.epochs=") + n);
    return words;
  };
  const Words mse = {"graph.kind=supervised", "loss.kind=mse", "model.projector=[60, 10]"};
  s.arms = {{"ssl, 2 epochs", "0 labels", epochs("2", {"graph.kind=ssl"}), "28"},
            {"supervised graph, 2 epochs", "all labels", epochs("2", {"graph.kind=supervised"}), "63"},
            {"baseline MSE, 2 epochs", "all labels", epochs("2", mse), "63"},
            {"ssl, 10 epochs", "0 labels", epochs("10", {"graph.kind=ssl"}), "62"},
            {"supervised graph, 10 epochs", "all labels", epochs("10", {"graph.kind=supervised"}), "66"}};
  if (args.fast) {  // tests the whole path; the results mean nothing
    s.arms.resize(3);
    for (Arm& arm : s.arms)
      arm.settings.insert(arm.settings.end(),
                          {"train.epochs=null", "train.steps=4", "data.limit=64", "train.global_batch=16",
                           "eval.every=4", "eval.train_samples=50", "eval.test_samples=20"});
  }
  return s;
}

// ---- the data -------------------------------------------------------------------------------------------------------

int run_pal(Context& context, const Words& words, int ranks) {
  return run_under_mpirun(context.program, words, ranks, std::max(1, io::usable_cores() / ranks));
}

void import_data(Context& context, const Words& words, const std::string& what) {
  const int code = run_pal(context, words, 1);
  PAL_CHECK_CODE(static_cast<Exit>(code), code == 0, "importing " + what + " failed with exit code {}", code,
                 "the reason is above");
}

void bring_fashion(ReproduceArguments& args, Context& context) {
  const std::string raw = "/usr/share/datasets/fashion-mnist";
  if (args.data.empty()) args.data = "data/fashion.h5";
  if (fs::exists(args.data)) return;
  PAL_DATA_CHECK(fs::is_directory(raw), "Fashion-MNIST is neither in " + args.data + " nor in {}", raw,
                 "apt-get install dataset-fashion-mnist, or give the imported set with --data FILE.h5");
  fs::create_directories(fs::path(args.data).parent_path());
  import_data(context, {"data", "import", "idx", raw, args.data}, "Fashion-MNIST");
}

void bring_cifar(const ReproduceArguments& args, Context& context) {
  if (fs::exists(args.out + "/cifar10.h5") && fs::exists(args.out + "/cifar10-test.h5")) return;
  PAL_CHECK(!args.data.empty(), "no folder with CIFAR-10 is given", "--data is missing",
            "download cifar-10-binary.tar.gz, unpack it, and give its folder: --data cifar-10-batches-bin");
  for (const char* file : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                           "data_batch_5.bin", "test_batch.bin", "batches.meta.txt"}) {
    PAL_DATA_CHECK(fs::exists(args.data + "/" + file),
                   "the folder " + args.data + " lacks a file of CIFAR-10's binary version", file,
                   "download cifar-10-binary.tar.gz and unpack it there");
  }
  fs::create_directories(args.out);
  import_data(context, {"data", "import", "cifar10", args.data, args.out + "/cifar10.h5"}, "CIFAR-10");
}

// ---- the runs -------------------------------------------------------------------------------------------------------

std::string folder_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

bool finished(const std::string& run) {
  return fs::exists(run + "/metrics.jsonl") && record::read_metrics(run + "/metrics.jsonl").done;
}

// Trains and evaluates the runs that are missing. Exit code 75: a signal stopped it; the same command resumes.
int one_run(const Study& study, const Arm& arm, const std::string& run, int64_t seed, const ReproduceArguments& args,
            Context& context) {
  if (!finished(run)) {
    Words words = {"train", study.config};
    words.insert(words.end(), study.shared.begin(), study.shared.end());
    words.insert(words.end(), arm.settings.begin(), arm.settings.end());
    words.insert(words.end(), {"train.seed=" + std::to_string(seed), "--run-dir", run});
    if (const int code = run_pal(context, words, args.ranks); code != 0) return code;
  }
  if (args.fast || fs::exists(run + "/eval.json")) return 0;
  return run_pal(context, {"eval", run, "linear", "knn", "--features", study.features, "--json", run + "/eval.json"},
                 args.ranks);
}

void collect(const std::string& run, const ReproduceArguments& args, Result& into) {
  if (args.fast) {
    const record::RunMetrics metrics = record::read_metrics(run + "/metrics.jsonl");
    into.linear.push_back(record::last_value(metrics, "eval_linear_top1", std::nan("")));
    into.knn.push_back(record::last_value(metrics, "eval_knn_top1", std::nan("")));
    return;
  }
  const auto value = io::parse_json(io::read_whole_file(run + "/eval.json"));
  PAL_DATA_CHECK(value.is_object() && value.contains("results") && value["results"].size() == 2,
                 "this is not a result of pal eval", run + "/eval.json", "remove it and run the same command again");
  into.linear.push_back(value["results"][0]["top1"]);
  into.knn.push_back(value["results"][1]["top1"]);
}

// The paper's qualitative claim: the supervised graph is as good as the MSE baseline, and both are above ssl at few
// epochs.
bool check_claim(const std::vector<Result>& results, size_t ssl, size_t graph, size_t mse) {
  const Spread a = spread_of(results[ssl].linear), b = spread_of(results[graph].linear),
               c = spread_of(results[mse].linear);
  const double tie = std::max(0.01, 2 * std::hypot(b.deviation, c.deviation));
  const auto line = [](bool holds, const std::string& text) {
    fmt::print("{} {}\n", holds ? "PASS" : "FAIL", text);
    return holds;
  };
  const bool alike = line(std::abs(b.mean - c.mean) <= tie,
                          fmt::format("supervised graph and MSE baseline differ by {:+.2f} points (at most {:.2f})",
                                      100 * (b.mean - c.mean), 100 * tie));
  const bool above =
      line(b.mean > a.mean, fmt::format("supervised graph is {:+.2f} points above ssl", 100 * (b.mean - a.mean)));
  return line(c.mean > a.mean, fmt::format("MSE baseline is {:+.2f} points above ssl", 100 * (c.mean - a.mean))) &&
         alike && above;
}

// Prints the next run and, after the first, an estimate of the remaining time.
class Countdown {
 public:
  Countdown(const Study& study, const ReproduceArguments& args,
            const std::function<std::string(size_t, int64_t)>& run_of) {
    for (size_t a = 0; a < study.arms.size(); ++a) {
      for (int64_t seed = 0; seed < args.seeds; ++seed) open_ += !finished(run_of(a, seed));
    }
  }
  void begin(const std::string& arm, int64_t seed, const std::string& run) {
    if (finished(run)) return;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    const std::string left =
        begun_ > 0 ? ", about " + format_seconds(seconds.count() / begun_ * (open_ - begun_)) + " left" : "";
    fmt::print("\n{}, seed {}: run {} of {}{}\n", arm, seed, ++begun_, open_, left);
    std::fflush(stdout);
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int open_ = 0, begun_ = 0;
};

int reproduce(ReproduceArguments args, Context& context) {
  const bool fashion = args.name == "fashion";
  if (args.out.empty()) args.out = "runs/" + args.name + (args.fast ? "-fast" : "");
  if (args.fast) args.seeds = 1;
  fashion ? bring_fashion(args, context) : bring_cifar(args, context);
  const Study study = fashion ? fashion_study(args) : cifar_study(args);
  PAL_CHECK(fs::exists(study.config), "the config of the table does not exist", study.config,
            "run this in the checkout of PAL, or give --configs DIR");

  std::vector<Result> results(study.arms.size());
  const auto run_of = [&](size_t arm, int64_t seed) {
    return fmt::format("{}/{}-{}", args.out, folder_name(study.arms[arm].name), seed);
  };
  Countdown countdown(study, args, run_of);
  for (int64_t seed = 0; seed < args.seeds; ++seed) {
    for (size_t a = 0; a < study.arms.size(); ++a) {
      const std::string run = run_of(a, seed);
      countdown.begin(study.arms[a].name, seed, run);
      if (const int code = one_run(study, study.arms[a], run, seed, args, context); code != 0) {
        fmt::print(stderr, "error: {} ended with exit code {}; the same command resumes there\n", run, code);
        return code;
      }
      collect(run, args, results[a]);
    }
  }
  std::vector<Words> rows = {{"graph", "supervision", "linear %", "kNN %"}};
  if (!fashion) rows[0].push_back("paper %");
  nlohmann::ordered_json json = {{"name", args.name}, {"fast", args.fast}, {"seeds", args.seeds}};
  for (size_t a = 0; a < results.size(); ++a) {
    rows.push_back(
        {study.arms[a].name, study.arms[a].supervision, spread_text(results[a].linear), spread_text(results[a].knn)});
    if (!fashion) rows.back().push_back(study.arms[a].published);
    json["rows"].push_back({{"name", study.arms[a].name},
                            {"told", study.arms[a].supervision},
                            {"linear", results[a].linear},
                            {"knn", results[a].knn}});
  }
  fmt::print("\npal reproduce {}: {} seed{}, runs in {}\n{}", args.name, args.seeds, args.seeds == 1 ? "" : "s",
             args.out, format_table(rows));
  io::write_file_atomically(args.out + "/table.json", json.dump(2) + "\n");
  if (args.fast) {
    fmt::print("--fast: a few steps on a few samples; the results mean nothing.\n");
    return static_cast<int>(Exit::ok);
  }
  const bool holds = fashion ? check_claim(results, 0, 3, 4) : check_claim(results, 0, 1, 2);
  return static_cast<int>(holds ? Exit::ok : Exit::check_failed);
}

}  // namespace

int cmd_reproduce(const std::vector<std::string>& arguments, Context& context) {
  ReproduceArguments args;
  CLI::App app(
      "Trains the runs behind a table and prints it beside the published one. The same command resumes where it "
      "stopped.",
      "pal reproduce");
  app.add_option("NAME", args.name,
                 "fashion: a table on Fashion-MNIST; cifar-paper: the table of the paper on CIFAR-10")
      ->required()
      ->check(CLI::IsMember({"fashion", "cifar-paper"}));
  app.add_option("--data", args.data,
                 "fashion: the imported set (data/fashion.h5); cifar-paper: the folder of CIFAR-10's binary version");
  app.add_option("--out", args.out, "folder of the runs; default runs/NAME");
  app.add_option("--configs", args.configs, "folder of the configs")->capture_default_str();
  app.add_option("--np", args.ranks, "number of ranks of each run")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--seeds", args.seeds, "number of runs (seeds) per line")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--fast", args.fast, "a few steps each: tests the path, the results mean nothing");
  app.footer(
      "fashion takes about an hour on two cores. Exit code 1 when the paper's claim does not hold: the supervised "
      "graph is as\n"
      "good as the MSE baseline, and both are above ssl.\n"
      "Examples:\n"
      "  pal reproduce fashion\n"
      "  pal reproduce cifar-paper --data cifar-10-batches-bin --np 8");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  return reproduce(args, context);
}

}  // namespace pal::launch
