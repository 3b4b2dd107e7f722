// cmd_eval: pal eval RUN linear knn …: measures on the test set how well a trained encoder separates the classes.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/data/loader/augment_spec.h"
#include "core/eval/finetune.h"
#include "core/eval/knn.h"
#include "core/eval/representation.h"
#include "core/io/files.h"
#include "core/io/json.h"
#include "core/plot/plot.h"
#include "core/record/run_info.h"
#include "core/setup/setup.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/process/machine.h"
#include "launch/report/parts.h"
#include "launch/run/device_option.h"
#include "launch/run/load_config.h"
#include "launch/run/trained_run.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct EvalArguments {
  std::string run, train, test;
  std::vector<std::string> methods;
  std::string features = "backbone", device;
  std::string json, picture;
  std::vector<int64_t> k = {20};
  std::vector<double> temperature = {0.07};
  std::optional<double> ridge = {};  // not given: chosen by a part of the training set
  double labels = 1;
  int64_t epochs = 0;  // 0: the method's own
  int64_t batch = 256;
  double lr = 0;  // 0: the method's own
  uint64_t seed = 0;
};

// The parts of an evaluation, on every rank.
struct Subject {
  const EvalArguments& args;
  const setup::RunSpec& spec;
  dist::World& world;
  std::shared_ptr<data::Dataset> train, test;
  at::Device device = at::kCPU;                       // of the encoder
  std::shared_ptr<model::Encoder> encoder = nullptr;  // null: the pixels
  at::Tensor a = {}, b = {};                          // features of both sets, if a method needs them
  int64_t classes() const { return static_cast<int64_t>(train->classes().size()); }
};

struct ScoreRow {
  std::string method;
  eval::Accuracy accuracy;
  std::optional<double> ridge = {};  // of a linear probe
};

bool needs_features(const std::string& method) {
  return method == "linear" || method == "ridge" || method == "knn" || method == "diagnostics";
}

eval::FinetuneOptions finetune_options(const Subject& s, eval::TrainedPart part) {
  eval::FinetuneOptions o;
  o.part = part;
  o.fraction = s.args.labels;
  o.global_batch = s.args.batch;
  o.seed = s.args.seed;
  o.epochs = s.args.epochs > 0 ? s.args.epochs : part == eval::TrainedPart::head ? 100 : 20;
  if (s.args.lr > 0) (part == eval::TrainedPart::head ? o.lr : o.encoder_lr) = s.args.lr;
  o.augment = data::augment_options(s.spec.augment, *s.train);
  o.dtype = s.spec.train.dtype;
  o.threads = setup::compute_threads(s.spec.train, s.world.cores());
  return o;
}

ScoreRow train_classifier(const Subject& s, const std::string& method) {
  eval::FinetuneOptions o = finetune_options(s, method == "sgd" ? eval::TrainedPart::head : eval::TrainedPart::all);
  std::unique_ptr<Progress> bar;
  o.progress = [&](int64_t step, int64_t steps, double loss) {
    if (s.world.rank() != 0) return;
    if (!bar) bar = std::make_unique<Progress>(method, steps);
    bar->update(step, fmt::format("loss {:.3f}", loss));
  };
  // Fine-tuning changes the encoder: it uses a copy, so that methods do not affect each other.
  const std::shared_ptr<model::Encoder> encoder =
      o.part == eval::TrainedPart::head ? s.encoder
                                        : load_trained_run(s.args.run, s.spec, s.world.compute(), s.device).encoder;
  return {fmt::format("{} ({} epochs)", method, o.epochs),
          eval::finetune(*encoder, s.train, *s.test, o, s.world.compute())};
}

// Collective; rows are complete on rank 0.
std::vector<ScoreRow> measure(const Subject& s, const std::string& method) {
  if (method == "sgd" || method == "finetune") return {train_classifier(s, method)};
  if (method == "knn") {
    std::vector<eval::KnnOptions> sweep;
    for (const int64_t k : s.args.k) {
      for (const double t : s.args.temperature) sweep.push_back({k, t});
    }
    std::unique_ptr<Progress> bar;
    if (s.world.rank() == 0) bar = std::make_unique<Progress>("knn", s.b.size(0) / s.world.size());
    const std::vector<eval::Accuracy> found = eval::knn_sweep(s.a, s.train->labels(), s.b, s.test->labels(),
                                                              s.classes(), sweep, s.world.compute(), [&](int64_t rows) {
                                                                if (bar) bar->update(rows, "test samples");
                                                              });
    std::vector<ScoreRow> rows;
    for (size_t i = 0; i < sweep.size(); ++i)
      rows.push_back(
          {sweep.size() == 1 ? "knn" : fmt::format("knn k={} t={:g}", sweep[i].k, sweep[i].temperature), found[i]});
    return rows;
  }
  if (s.world.rank() != 0) return {};
  eval::ProbeOptions probe;
  probe.method = method == "ridge" ? eval::ProbeMethod::ridge : eval::ProbeMethod::lbfgs;
  const int64_t most = (s.args.ridge ? 1 : 3) * probe.iterations;  // choosing the ridge takes twice as many
  int64_t passes = 0;
  Progress bar(method, most);
  probe.progress = [&] { bar.update(++passes, "passes at most"); };
  probe.ridge = s.args.ridge ? *s.args.ridge : eval::choose_ridge(s.a, s.train->labels(), s.classes(), probe);
  const eval::Accuracy found = eval::linear_probe(s.a, s.train->labels(), s.b, s.test->labels(), s.classes(), probe);
  if (passes > 0) bar.update(most, fmt::format("{} passes", passes));
  return {{method, found, probe.ridge}};
}

Json to_json(const ScoreRow& row, const std::vector<std::string>& classes) {
  const eval::Accuracy& a = row.accuracy;
  Json per_class = Json::object();
  for (size_t c = 0; c < classes.size(); ++c) per_class[classes[c]] = a.per_class[c];
  Json out = {{"method", row.method}, {"top1", a.top1},   {"top5", a.top5}, {"low", a.low},
              {"high", a.high},       {"train", a.train}, {"test", a.test}, {"per_class", per_class}};
  if (row.ridge) out["ridge"] = *row.ridge;
  if (classes.size() <= 200) {
    for (size_t c = 0; c < classes.size(); ++c) {
      const auto row_begin = a.confusion.begin() + static_cast<ptrdiff_t>(c * classes.size());
      out["confusion"].push_back(std::vector<int64_t>(row_begin, row_begin + static_cast<ptrdiff_t>(classes.size())));
    }
  }
  return out;
}

// RUN/eval.json, which `pal runs` and `pal report` read: this evaluation, and of the earlier ones of the same
// checkpoint the methods that were not measured again.
void keep_results(const std::string& run, Json out) try {
  const std::string path = run + "/eval.json";
  const Json before = fs::exists(path) ? io::parse_json<Json>(io::read_whole_file(path)) : Json();
  const auto same = [&](const char* key) { return before.contains(key) && before[key] == out[key]; };
  if (before.is_object() && same("step") && same("features") && same("train") && same("test") &&
      before.contains("results") && before["results"].is_array()) {
    for (const Json& old : before["results"]) {
      const auto again = [&](const Json& r) {
        return old.is_object() && old.contains("method") && r["method"] == old["method"];
      };
      if (std::none_of(out["results"].begin(), out["results"].end(), again)) out["results"].push_back(old);
    }
    if (!out.contains("diagnostics") && before.contains("diagnostics")) out["diagnostics"] = before["diagnostics"];
    if (before.contains("command") && before["command"].is_string() && before["command"] != out["command"])
      out["command"] = before["command"].get<std::string>() + "; " + out["command"].get<std::string>();
  }
  io::write_file_atomically(path, out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
} catch (const Error& e) {  // a folder of another user, or no file
  fmt::print(stderr, "warning: pal runs and pal report will not show this evaluation: {}\n", printable(e.what()));
}

// Collective. Rank, uniformity and alignment of the test set's features.
Json diagnostics(const Subject& s) {
  Json out = {{"rank", eval::feature_rank(s.b)}, {"uniformity", eval::uniformity(s.b)}};
  if (s.encoder == nullptr || s.args.features != "backbone") return out;
  eval::EmbedOptions options;
  options.dtype = s.spec.train.dtype;
  options.threads = setup::compute_threads(s.spec.train, s.world.cores());
  const int64_t count = std::min<int64_t>(2048, s.test->size());
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * s.test->size() / count);
  const eval::TwoViews views = eval::embed_two_views(
      *s.encoder, s.test, samples, data::view_set(s.spec.augment, *s.test), options, s.world.compute());
  out["alignment"] = eval::alignment(views.one, views.other);
  return out;
}

// What the figures mean. A graph of C classes needs C − 1 directions; an encoder that uses fewer, and fewer than a
// twentieth of its columns, separates few classes.
std::string diagnosis(const Json& found, int64_t dims, int64_t classes) {
  const auto rank = found["rank"].get<double>();
  const double least =
      std::min(0.05 * static_cast<double>(dims), static_cast<double>(std::max<int64_t>(classes, 2) - 1));
  std::string text = fmt::format("rank {:.1f} of {}: {}\n", rank, dims,
                                 rank < std::max(1.5, least)
                                     ? "low, the features use few directions (1: all on a line); train longer, raise "
                                       "the loss's terms against collapse, or lower the learning rate"
                                     : "not low");
  text += fmt::format("uniformity {:.2f} (0: all features are equal; near -4: spread over the whole sphere)\n",
                      found["uniformity"].get<double>());
  if (found.contains("alignment"))
    text += fmt::format("alignment {:.3f} (0: two views of an image have the same features; 2: unrelated ones)\n",
                        found["alignment"].get<double>());
  return text;
}

void check_classes(const data::Dataset& train, const data::Dataset& test) {
  PAL_DATA_CHECK(train.classes() == test.classes(), "the training and the test set have different classes",
                 fmt::format("{} and {}", train.classes().size(), test.classes().size()),
                 "give two sets of one import");
}

int evaluate(const EvalArguments& args, const setup::RunSpec& spec, dist::World& world) {
  at::set_num_threads(setup::compute_threads(spec.train, world.cores()));
  const auto start = std::chrono::steady_clock::now();
  Subject s{args, spec, world, data::Dataset::open(args.train), data::Dataset::open(args.test)};
  check_classes(*s.train, *s.test);
  const std::string overlap = world.rank() == 0 ? data::overlap_warning(*s.train, *s.test) : "";
  if (!overlap.empty()) fmt::print(stderr, "warning: {}\n", printable(overlap));
  int64_t step = 0;
  if (args.features != "pixels") {
    s.device = encoder_device(args.device, spec.train, world);
    const TrainedRun trained = load_trained_run(args.run, spec, world.compute(), s.device);
    s.encoder = trained.encoder;
    step = trained.step;
  }
  const bool wants = !args.picture.empty() || std::any_of(args.methods.begin(), args.methods.end(), needs_features);
  if (wants) {
    const eval::EmbedWhat what = args.features == "projector" ? eval::EmbedWhat::embedding : eval::EmbedWhat::features;
    const auto features = [&](const data::Dataset& data, const std::string& name) {
      if (s.encoder) return embed_all(*s.encoder, spec, data, what, world, name);
      std::vector<int64_t> all(static_cast<size_t>(data.size()));
      std::iota(all.begin(), all.end(), int64_t{0});
      std::unique_ptr<Progress> bar;
      if (world.rank() == 0) bar = std::make_unique<Progress>("pixels " + name, data.size());
      return eval::inputs(data, all, spec.augment, setup::compute_threads(spec.train, world.cores()),
                          [&](int64_t done) {
                            if (bar) bar->update(done, "");
                          });
    };
    s.a = features(*s.train, "train");
    s.b = features(*s.test, "test");
    PAL_DATA_CHECK(s.a.size(1) == s.b.size(1), "an image of the test set has {} values", s.b.size(1),
                   "one of the training set has " + std::to_string(s.a.size(1)) + ": set data.size");
  }
  Json out = {{"command", record::command_line()},
              {"run", args.run},
              {"features", args.features},
              {"step", step},
              {"train", args.train},
              {"test", args.test},
              {"labels", args.labels}};
  if (wants) out["dims"] = s.a.size(1);
  out["results"] = Json::array();
  std::vector<std::vector<std::string>> table = {{"method", "top-1 %", "95 %", "top-5 %", "train", "test", "features"}};
  std::string ridges;
  for (const std::string& method : args.methods) {
    if (method == "diagnostics") {
      out["diagnostics"] = diagnostics(s);
      continue;
    }
    const std::vector<ScoreRow> rows = measure(s, method);
    world.control().barrier();  // rank 0 may take long; NCCL would take the next method's collective for a hang
    for (const ScoreRow& row : rows) {
      const eval::Accuracy& r = row.accuracy;
      table.push_back({row.method, fmt::format("{:.2f}", 100 * r.top1),
                       fmt::format("{:.2f} to {:.2f}", 100 * r.low, 100 * r.high), fmt::format("{:.2f}", 100 * r.top5),
                       std::to_string(r.train), std::to_string(r.test), args.features});
      out["results"].push_back(to_json(row, s.train->classes()));
      if (row.ridge)
        ridges += fmt::format("ridge penalty of {}: {:.2g}{}\n", row.method, *row.ridge,
                              args.ridge ? "" : ", chosen on a fifth of the training features");
    }
  }
  if (world.rank() != 0) return static_cast<int>(Exit::ok);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  out["seconds"] = seconds.count();
  if (table.size() > 1) fmt::print("{}{}", format_table(table), ridges);
  if (out.contains("diagnostics")) fmt::print("{}", diagnosis(out["diagnostics"], s.b.size(1), s.classes()));
  if (!args.picture.empty())
    io::write_file_atomically(args.picture, embedding_plot(s.b, s.test->labels(), s.test->classes()));
  if (s.encoder)
    fmt::print("measured: the checkpoint of step {}, on the {}\n", step, s.device.is_cpu() ? "CPU" : "GPU");
  if (!args.json.empty())
    io::write_file_atomically(args.json, out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  if (s.encoder && args.features == "backbone" && args.train == spec.data.train && args.test == spec.data.test)
    keep_results(args.run, std::move(out));
  return static_cast<int>(Exit::ok);
}

}  // namespace

int cmd_eval(const std::vector<std::string>& arguments, Context& context) {
  EvalArguments args;
  CLI::App app("Evaluates a trained encoder on the test set: probes, nearest neighbors, fine-tuning.", "pal eval");
  app.add_option("RUN", args.run, "run folder; with --features pixels a config is enough")->required();
  app.add_option("METHOD", args.methods, "linear, ridge, knn, sgd, finetune, diagnostics; default linear knn")
      ->check(CLI::IsMember({"linear", "ridge", "knn", "sgd", "finetune", "diagnostics"}));
  app.add_option("--features", args.features,
                 "features that are classified: backbone, projector, or the pixels themselves")
      ->check(CLI::IsMember({"backbone", "projector", "pixels"}));
  app.add_option("--train", args.train, "training shards of another data set (transfer)");
  app.add_option("--test", args.test, "test shards of that data set");
  app.add_option("--k", args.k, "number of neighbors; several give a sweep: 5,20,200")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--temperature", args.temperature, "temperature of the neighbors' votes; several give a sweep")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--ridge", args.ridge,
                 "ridge penalty of linear and ridge; default: chosen on a fifth of the training features")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--labels", args.labels, "fraction of the labels of each class that sgd and finetune use")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  app.add_option("--epochs", args.epochs, "epochs of sgd (default 100) and finetune (default 20)")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", args.batch, "samples per step of sgd and finetune, over all ranks")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option(
         "--lr", args.lr,
         "learning rate per 256 samples: of sgd's classifier (default 0.3), of finetune's encoder (default 0.03)")
      ->check(CLI::PositiveNumber);
  add_device_option(app, args.device);
  app.add_option("--seed", args.seed, "seed of the drawn labels and of the views")->capture_default_str();
  app.add_option("--picture", args.picture, "also draw the test set in its two directions of most variance, F.svg");
  app.add_option("--json", args.json, "also write the results to this file: intervals, per class, confusion");
  app.footer(
      "The results of backbone features on the run's own sets are kept in RUN/eval.json, for pal runs and pal report.\n"
      "Examples:\n"
      "  pal eval runs/quickstart linear knn\n"
      "  pal eval runs/quickstart knn --k 5,20,100 --temperature 0.02,0.07,0.2\n"
      "  pal eval runs/quickstart finetune --labels 0.01 --epochs 30\n"
      "  pal eval runs/quickstart linear --train data/other.h5 --test data/other-test.h5\n"
      "  pal eval configs/quickstart.yaml linear --features pixels\n"
      "  mpirun -np 2 --bind-to none pal eval runs/quickstart sgd knn --json result.json\n"
      "  (as root, mpirun also needs --allow-run-as-root)");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (args.methods.empty()) args.methods = {"linear", "knn"};
  for (const std::string& method : args.methods) {
    PAL_CHECK(args.features == "backbone" || (method != "sgd" && method != "finetune"),
              method + " trains on images through the encoder, not on --features", args.features,
              "leave --features out");
  }
  PAL_CHECK(args.features != "pixels" || args.device != "cuda", "pixels need no encoder and are read by the CPU",
            "--device=cuda", "leave --device out");
  PAL_CHECK(args.train.empty() == args.test.empty(), "transfer needs a training and a test set, but only one is given",
            args.train + args.test, "give --train and --test");
  PAL_CHECK(fs::exists(args.run), "this run folder or config does not exist", args.run,
            "give the run folder that pal train printed");
  const bool is_run = fs::is_directory(args.run);
  PAL_CHECK(is_run || args.features == "pixels", "a config has no weights to evaluate", args.run,
            "give a run folder, or --features pixels");
  const setup::RunSpec spec = is_run ? run_spec(args.run) : setup::make_run_spec(load_config(args.run, {}));
  if (args.train.empty()) {
    PAL_CHECK(!spec.data.test.empty(), "the config names no test set", "data.test is empty",
              "set data.test in the config");
    args.train = spec.data.train;
    args.test = spec.data.test;
  }
  keep_freed_memory();
  return evaluate(args, spec, context.start_world());
}

}  // namespace pal::launch
