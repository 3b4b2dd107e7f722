// cmd_experiment: pal experiment NAME|all: runs the controlled experiments of the paper in closed form, as CSV and SVG.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "core/io/files.h"
#include "core/plot/plot.h"
#include "core/theory/experiment.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

// Options of the command line; the others have the default of the figure.
struct ExperimentArguments {
  std::string name, out, dataset = "circles";
  std::optional<int64_t> n, test, steps, batch, trials, orders, width, network_steps, landmarks;
  std::optional<double> noise, sigma, lambda, view_noise;
  std::vector<double> alphas;
  uint64_t seed = 0;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

theory::ExperimentOptions options_of(const ExperimentArguments& args, const theory::FigureSpec& figure,
                                     theory::ToyKind dataset) {
  theory::ExperimentOptions o = theory::with_dataset(figure, dataset);
  o.n = args.n.value_or(o.n);
  o.test = args.test.value_or(o.test);
  o.steps = args.steps.value_or(o.steps);
  o.batch = args.batch.value_or(o.batch);
  o.orders = args.orders.value_or(o.orders);
  o.trials = args.trials.value_or(o.trials);
  o.kernel.width = args.width.value_or(o.kernel.width);
  o.noise = args.noise.value_or(o.noise);
  o.kernel.sigma = args.sigma.value_or(o.kernel.sigma);
  o.kernel.lambda = args.lambda.value_or(o.kernel.lambda);
  o.view_noise = args.view_noise.value_or(o.view_noise);
  if (!args.alphas.empty() && !o.alphas.empty()) o.alphas = args.alphas;
  o.landmarks = args.landmarks.value_or(o.landmarks);
  o.network_steps = args.network_steps.value_or(o.network_steps);
  o.seed = args.seed;
  o.threads = args.threads;
  theory::check_experiment(figure, o);
  return o;
}

plot::PlotCurve curve_of(const theory::CurveStatistics& s) {
  return {.name = s.series, .x = s.x, .y = s.mean, .spread = s.std};
}

// Curves are means; the band around a curve is one standard deviation of the trials on either side.
plot::PlotPanel panel_of(const theory::FigureSpec& figure, const std::string& dataset, int64_t trials,
                         const std::vector<theory::CurveStatistics>& curves, const std::string& y_label) {
  plot::PlotPanel panel{.title = fmt::format("{} ({}, {} trials)", figure.title, dataset, trials),
                        .x = {.label = figure.x_label, .scale = figure.x_scale},
                        .y = {.label = y_label, .low = 0.0},
                        .curves = {}};
  for (const theory::CurveStatistics& s : curves) panel.curves.push_back(curve_of(s));
  return panel;
}

using DatasetCurves = std::vector<std::pair<std::string, std::vector<theory::CurveStatistics>>>;

void write_group(const std::string& path, const DatasetCurves& groups, const std::vector<plot::PlotPanel>& panels,
                 int64_t trials) {
  io::write_file_atomically(path + ".csv", theory::experiment_csv(groups, trials));
  io::write_file_atomically(path + ".svg", plot::svg_plot(panels));
}

void run_one(const theory::FigureSpec& figure, const ExperimentArguments& args,
             const std::vector<std::pair<std::string, theory::ToyKind>>& datasets, dist::World& world) {
  DatasetCurves error, mse, also;
  std::vector<plot::PlotPanel> error_panels, mse_panels, also_panels;
  int64_t trials = 0;
  for (const auto& [dataset, kind] : datasets) {
    const theory::ExperimentOptions options = options_of(args, figure, kind);
    std::unique_ptr<Progress> bar;
    if (world.rank() == 0)
      bar = std::make_unique<Progress>(figure.name + " " + dataset, (options.trials + world.size() - 1) / world.size());
    const theory::ExperimentResult result =
        theory::run_figure(figure, options, world.compute(), [&](int64_t done, int64_t) {
          if (bar) bar->update(done, "trials");
        });
    trials = result.trials;
    const bool one_file = figure.name == "missing";  // the components are in the file of the error
    std::vector<theory::CurveStatistics> both = result.error;
    error_panels.push_back(panel_of(figure, dataset, trials, result.error, "test error (fraction of wrong classes)"));
    if (one_file) {
      both.insert(both.end(), result.also.begin(), result.also.end());
      plot::PlotCurve components = curve_of(result.also[0]);
      components.side = plot::CurveSide::right;
      components.stroke = plot::CurveStroke::dashed;
      error_panels.back().right = {.label = figure.also_label, .low = 0.0};
      error_panels.back().curves.push_back(components);
    }
    error.emplace_back(dataset, both);
    mse.emplace_back(dataset, result.mse);
    mse_panels.push_back(panel_of(figure, dataset, trials, result.mse, "mean-square error"));
    if (!one_file && !result.also.empty()) {
      also.emplace_back(dataset, result.also);
      also_panels.push_back(panel_of(figure, dataset, trials, result.also, figure.also_label));
    }
  }
  if (world.rank() != 0) return;
  const std::string path = args.out + "/" + figure.name;
  write_group(path, error, error_panels, trials);
  write_group(path + "-mse", mse, mse_panels, trials);
  if (!also.empty()) write_group(path + "-graph", also, also_panels, trials);
  if (figure.name == "active") {
    for (const auto& [dataset, kind] : datasets) {
      const theory::SnapshotPictures pictures = theory::draw_snapshots(options_of(args, figure, kind));
      const std::string tail = dataset == "circles" ? "" : "-" + dataset;
      if (!pictures.representation.empty())
        io::write_file_atomically(path + "-snapshots" + tail + ".svg", pictures.representation);
      io::write_file_atomically(path + "-graphs" + tail + ".svg", pictures.graph);
    }
  }
  fmt::print("wrote {0}.csv, {0}.svg and {0}-mse\n", path);
}

// Makes the folder if it is missing and tests it: a folder that cannot be written must fail before hours of work.
void prepare_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  PAL_CHECK(!error && fs::is_directory(folder), "the folder cannot be made",
            folder + (error ? ": " + error.message() : ""), "choose a folder you may write to");
  const std::string probe = folder + "/.pal-experiment";
  io::write_file_atomically(probe, "");
  fs::remove(probe, error);
}

}  // namespace

int cmd_experiment(const std::vector<std::string>& arguments, Context& context) {
  ExperimentArguments args;
  CLI::App app("Runs the controlled experiments of the paper in closed form (kernel method, no network): CSV and SVG.",
               "pal experiment");
  app.add_option("NAME", args.name, "active, contrastive, interpolation, missing, noise, network, scale, or all")
      ->required();
  app.add_option("--out", args.out, "folder of the results: NAME.csv, NAME.svg, NAME-mse.csv, …")->required();
  app.add_option("--dataset", args.dataset, "circles, mixture, or both side by side")
      ->check(CLI::IsMember({"circles", "mixture", "both"}));
  app.add_option("--trials", args.trials, "number of trials (interpolation: data sets × orders)");
  app.add_option("--seed", args.seed, "seed of the data and of every choice");
  app.add_option("--n", args.n, "number of training points");
  app.add_option("--test", args.test, "number of test points");
  app.add_option("--steps", args.steps, "points of the sweep");
  app.add_option("--batch", args.batch, "questions, or labels, per step");
  app.add_option("--noise", args.noise, "standard deviation of the points");
  app.add_option("--sigma", args.sigma, "width of the kernel");
  app.add_option("--lambda", args.lambda, "regularization");
  app.add_option("--k", args.width, "width of the representation");
  app.add_option("--alpha", args.alphas, "interpolation: weight of the labels' graph (may be repeated)");
  app.add_option("--orders", args.orders, "interpolation: label orders per data set");
  app.add_option("--view-noise", args.view_noise, "interpolation: standard deviation of a view");
  app.add_option("--landmarks", args.landmarks, "scale: number of landmark points of the kernel (Nystrom)");
  app.add_option("--network-steps", args.network_steps, "network: steps of gradient descent");
  app.add_option("--threads", args.threads, "threads per rank; the results do not depend on it")
      ->check(CLI::Range(1, 1024));
  app.footer(
      "Options that are not given have the values of the paper (pal help experiment).\n"
      "Examples:\n"
      "  pal experiment active --out figures\n"
      "  pal experiment all --dataset mixture --trials 20 --out figures\n"
      "  mpirun -np 2 --bind-to none pal experiment noise --threads 1 --out figures\n"
      "  (as root, mpirun also needs --allow-run-as-root)");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  std::vector<const theory::FigureSpec*> chosen;
  for (const theory::FigureSpec& f : theory::figures()) {
    if (args.name == "all" || args.name == f.name) chosen.push_back(&f);
  }
  if (chosen.empty()) theory::figure(args.name);  // throws with the reason
  std::vector<std::pair<std::string, theory::ToyKind>> datasets;
  if (args.dataset != "mixture") datasets.emplace_back("circles", theory::ToyKind::circles);
  if (args.dataset != "circles") datasets.emplace_back("mixture", theory::ToyKind::mixture);
  for (const theory::FigureSpec* f : chosen) {
    for (const auto& [dataset, kind] : datasets) options_of(args, *f, kind);  // reports every mistake before any work
  }
  dist::World& world = context.start_world();
  if (world.rank() == 0) prepare_folder(args.out);
  for (const theory::FigureSpec* f : chosen) run_one(*f, args, datasets, world);
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
