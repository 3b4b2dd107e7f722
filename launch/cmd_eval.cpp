// cmd_eval: pal eval RUN linear knn: how much a frozen encoder knows about the classes, on the test set.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/data/policy.h"
#include "core/eval/embed.h"
#include "core/eval/knn.h"
#include "core/eval/linear_probe.h"
#include "core/io/checkpoint.h"
#include "core/io/files.h"
#include "core/model/state.h"
#include "core/setup.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/machine.h"
#include "launch/progress.h"
#include "launch/table.h"

namespace pal {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string run;
  std::vector<std::string> methods;
  std::string features = "backbone";
  std::string json;
  KnnOptions knn;
  ProbeOptions probe;
};

// One split: features of every sample, in order, on every rank.
at::Tensor split_features(const Arguments& args, const Config& config, const Dataset& data, Encoder* encoder, World& world,
                          const std::string& name) {
  std::vector<int64_t> all(data.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  if (encoder == nullptr) return pixels(data, all);
  std::unique_ptr<Progress> bar;
  if (world.rank() == 0) bar = std::make_unique<Progress>("embed " + name, data.size() / world.size());
  EmbedOptions options;
  options.what = args.features == "projector" ? EmbedWhat::embedding : EmbedWhat::features;
  options.augment = augment_options(config, data);
  options.dtype = scalar_type(config);
  options.threads = compute_threads(config, world.cores());
  if (bar) options.progress = [&](int64_t done) { bar->update(done, ""); };
  return embed(*encoder, data, all, options, world.now());
}

std::shared_ptr<Encoder> load_encoder(const std::string& run, const Config& config, World& world, int64_t* step) {
  const auto checkpoint = load_newest_checkpoint(run, [](const std::string& w) { fmt::print(stderr, "warning: {}\n", w); });
  PAL_DATA_CHECK(checkpoint.has_value(), "no usable checkpoint in the run folder", run, "train it first: pal train");
  auto encoder = make_encoder(model_spec(config), world.now());
  restore(model_state(*encoder), checkpoint->model, checkpoint->path + "/model.safetensors");
  *step = checkpoint->state.step;
  return encoder;
}

}  // namespace

int cmd_eval(const std::vector<std::string>& arguments, Context& context) {
  Arguments args;
  CLI::App app("Evaluates a frozen encoder: linear probe and weighted nearest neighbours, training set against test set.", "pal eval");
  app.add_option("RUN", args.run, "run folder; with --features pixels a config is enough")->required();
  app.add_option("METHOD", args.methods, "linear, knn, or both (the default)")->check(CLI::IsMember({"linear", "knn"}));
  app.add_option("--features", args.features, "what is classified: backbone, projector, or the pixels themselves")
      ->check(CLI::IsMember({"backbone", "projector", "pixels"}));
  app.add_option("--k", args.knn.k, "neighbours")->check(CLI::PositiveNumber);
  app.add_option("--temperature", args.knn.temperature, "of the neighbours' votes")->check(CLI::PositiveNumber);
  app.add_option("--ridge", args.probe.ridge, "of the linear probe")->check(CLI::NonNegativeNumber);
  app.add_option("--json", args.json, "also write the results to this file");
  app.footer(
      "Examples:\n"
      "  pal eval runs/quickstart linear knn\n"
      "  pal eval configs/quickstart.yaml linear --features pixels\n"
      "  mpirun -np 2 --bind-to none pal eval runs/quickstart knn --json result.json");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (args.methods.empty()) args.methods = {"linear", "knn"};

  const bool is_run = fs::is_directory(args.run);
  PAL_CHECK(is_run || fs::exists(args.run), "no such run folder or config", args.run, "give what pal train printed as the run folder");
  PAL_CHECK(is_run || args.features == "pixels", "a config has no weights to evaluate", args.run, "give a run folder, or --features pixels");
  PAL_CHECK(!is_run || fs::exists(args.run + "/config.yaml"), "the folder holds no run (no config.yaml)", args.run, "give a run folder");
  const Config config = is_run ? Config::load_resolved(args.run + "/config.yaml") : Config::load(args.run, {});
  PAL_CHECK(config.has("data.test"), "no test set is given", "data.test is empty", "set data.test in the config");

  keep_freed_memory();
  World& world = context.start_world();
  at::set_num_threads(compute_threads(config, world.cores()));
  const auto start = std::chrono::steady_clock::now();
  const auto train = Dataset::open(config.text("data.train"));
  const auto test = Dataset::open(config.text("data.test"));
  const auto classes = static_cast<int64_t>(train->classes().size());
  PAL_DATA_CHECK(train->classes() == test->classes(), "training and test set have different classes",
                 fmt::format("{} and {}", train->classes().size(), test->classes().size()), "evaluate on the set that belongs to it");
  int64_t step = 0;
  const auto encoder = args.features == "pixels" ? nullptr : load_encoder(args.run, config, world, &step);
  const at::Tensor a = split_features(args, config, *train, encoder.get(), world, "train");
  const at::Tensor b = split_features(args, config, *test, encoder.get(), world, "test");
  if (world.rank() != 0) return static_cast<int>(Exit::ok);

  nlohmann::json out = {{"run", args.run}, {"features", args.features}, {"step", step}, {"dims", a.size(1)}};
  std::vector<std::vector<std::string>> rows = {{"method", "top-1 %", "train", "test", "features"}};
  for (const std::string& method : args.methods) {
    const Accuracy r = method == "linear" ? linear_probe(a, train->labels(), b, test->labels(), classes, args.probe)
                                          : knn(a, train->labels(), b, test->labels(), classes, args.knn);
    rows.push_back({method, fmt::format("{:.2f}", 100 * r.top1), std::to_string(r.train), std::to_string(r.test),
                    fmt::format("{} ({})", args.features, a.size(1))});
    out["results"].push_back({{"method", method}, {"top1", r.top1}, {"train", r.train}, {"test", r.test}});
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  out["seconds"] = seconds.count();
  fmt::print("{}", format_table(rows));
  if (!args.json.empty()) write_file_atomically(args.json, out.dump(2) + "\n");
  return static_cast<int>(Exit::ok);
}

}  // namespace pal
