// cmd_plan: pal plan CONFIG --cluster …: predicts how a run scales, with a model of computation and communication.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/plot/plot.h"
#include "core/setup/run_spec.h"
#include "dist/scale/cluster.h"
#include "dist/scale/scale_inputs.h"
#include "dist/scale/scale_model.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/run/load_config.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kLabel = "a model (pal help scale), not a measurement";

struct PlanArguments {
  std::string config, cluster = "a100-8", json, svg;
  std::vector<std::string> overrides;
  std::vector<int> gpus;
  int64_t samples_per_gpu = 0;
  bool published = false, description = false;
};

// One number of GPUs: first the form of the loss that the program would use, then the others.
struct Point {
  std::vector<std::pair<dist::LossForm, dist::StepCost>> forms;
  const dist::StepCost& chosen() const { return forms[0].second; }
};

struct Plan {
  std::string config;
  dist::Cluster cluster;
  dist::ModelCost model;
  std::vector<Point> points;
};

std::string milli(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }
std::string giga(double bytes) { return fmt::format("{:.1f}", bytes / 1e9); }
// Marked where it does not fit.
std::string memory_text(const dist::StepCost& s, const dist::Cluster& c) {
  return giga(s.memory.total()) + (s.memory.total() > c.memory_bytes ? "!" : "");
}
std::string minutes(double seconds) { return fmt::format("{:.{}f}", seconds / 60, seconds < 600 ? 1 : 0); }

Plan make_plan(const PlanArguments& args) {
  const setup::RunSpec spec = setup::make_run_spec(load_config(args.config, args.overrides));
  Plan plan{args.config, dist::read_cluster(args.cluster), dist::measure_model(spec, dist::view_sides(spec)), {}};
  const dist::Workload work = dist::step_workload(spec, plan.model);
  for (const int gpus : args.gpus) {
    dist::Workload w = work;
    if (args.samples_per_gpu > 0) w.samples = args.samples_per_gpu * gpus;
    if (gpus > w.samples) continue;
    Point point;
    for (const dist::LossForm form : dist::loss_forms(spec, plan.model, w.samples)) {
      w.loss.form = form;
      point.forms.emplace_back(form, dist::predict_step(plan.model, w, plan.cluster, gpus));
    }
    plan.points.push_back(std::move(point));
  }
  PAL_CHECK(!plan.points.empty(), "every number of GPUs is larger than train.global_batch, which is {}", work.samples,
            "give fewer --gpus, or --samples-per-gpu");
  return plan;
}

void print_steps(const Plan& plan) {
  Rows rows = {{"GPUs", "samples", "step ms", "compute", "norm", "loss", "gradients", "efficiency", "samples/s", "GB",
                "load/s", "save min", "effective"}};
  bool full = false, bound = false;
  for (const Point& point : plan.points) {
    const dist::StepCost& s = point.chosen();
    full = full || s.memory.total() > plan.cluster.memory_bytes;
    bound = bound || s.loader_bound;
    rows.push_back({std::to_string(s.gpus), fmt::format("{:.4g}", s.samples_per_gpu),
                    milli(s.step) + (s.loader_bound ? "*" : ""), milli(s.compute + s.loss_compute + s.optimizer),
                    milli(s.exposed_norm), milli(s.exposed_loss), milli(s.exposed_gradients),
                    fmt::format("{:.1f} %", 100 * s.efficiency), fmt::format("{:.0f}", s.samples_per_s),
                    memory_text(s, plan.cluster), fmt::format("{:.0f}", s.loader_per_node),
                    minutes(s.checkpoint_interval), fmt::format("{:.2f} %", 100 * s.effective)});
  }
  fmt::print("{}", format_table(rows));
  fmt::print(
      "samples: per GPU; norm, loss, gradients: exposed communication in ms; GB: per GPU; load/s: samples per second "
      "that "
      "a node must load;\n"
      "save: time between checkpoints; effective: fraction of the time that remains after failures and checkpoints\n");
  if (full)
    fmt::print("! more than the {:.0f} GB of a GPU: raise train.micro_batches, or use more GPUs\n",
               plan.cluster.memory_bytes / 1e9);
  if (bound)
    fmt::print("* limited by the loader: {:.0f} samples/s per node (loader_per_s)\n", plan.cluster.loader_rate);
}

void print_forms(const Plan& plan) {
  if (plan.points[0].forms.size() < 2) return;
  std::vector<dist::LossForm> order = {dist::LossForm::official, dist::LossForm::covariance, dist::LossForm::gram};
  Rows rows = {{"loss ms"}};
  for (const dist::LossForm form : order) rows[0].push_back(dist::loss_form_name(form));
  rows[0].push_back("chosen");
  for (const dist::LossForm form : order) rows[0].push_back(std::string("GB ") + dist::loss_form_name(form));
  for (const Point& point : plan.points) {
    std::vector<std::string> times, memory;
    for (const dist::LossForm form : order) {
      for (const auto& [f, s] : point.forms) {
        if (f != form) continue;
        times.push_back(milli(s.exposed_loss + s.loss_compute));
        memory.push_back(memory_text(s, plan.cluster));
      }
    }
    std::vector<std::string> row = {std::to_string(point.chosen().gpus)};
    row.insert(row.end(), times.begin(), times.end());
    row.push_back(dist::loss_form_name(point.forms[0].first));
    row.insert(row.end(), memory.begin(), memory.end());
    rows.push_back(row);
  }
  fmt::print("\nforms of the loss (time of its collectives and matrix products; total memory of a GPU)\n{}",
             format_table(rows));
  fmt::print(
      "official: gathers Z, every GPU computes all rows, and reduces the gathered gradient; pal uses the other two\n");
}

json point_json(dist::LossForm form, const dist::StepCost& s) {
  return {{"form", dist::loss_form_name(form)},
          {"step_ms", 1e3 * s.step},
          {"compute_ms", 1e3 * s.compute},
          {"loss_compute_ms", 1e3 * s.loss_compute},
          {"optimizer_ms", 1e3 * s.optimizer},
          {"exposed_norm_ms", 1e3 * s.exposed_norm},
          {"exposed_loss_ms", 1e3 * s.exposed_loss},
          {"exposed_gradients_ms", 1e3 * s.exposed_gradients},
          {"gradients_ms", 1e3 * s.gradient_seconds},
          {"efficiency", s.efficiency},
          {"samples_per_s", s.samples_per_s},
          {"loader_bound", s.loader_bound},
          {"loader_per_node", s.loader_per_node},
          {"loss_bytes", s.loss_bytes},
          {"norm_bytes", s.norm_bytes},
          {"gradient_bytes", s.gradient_bytes},
          {"memory_bytes", s.memory.total()},
          {"checkpoint_bytes", s.checkpoint_bytes},
          {"checkpoint_stall_s", s.checkpoint_stall},
          {"checkpoint_interval_s", s.checkpoint_interval},
          {"effective", s.effective}};
}

void write_json(const Plan& plan, const std::string& file) {
  json cluster = {
      {"name", plan.cluster.name}, {"gpu", plan.cluster.gpu}, {"gpus_per_node", plan.cluster.fabric.per_node}};
  for (const dist::ClusterKey& key : dist::cluster_keys()) cluster[key.name] = dist::cluster_value(plan.cluster, key);
  json points = json::array();
  for (const Point& point : plan.points) {
    json forms = json::array();
    for (const auto& [form, s] : point.forms) forms.push_back(point_json(form, s));
    points.push_back({{"gpus", point.chosen().gpus},
                      {"nodes", point.chosen().nodes},
                      {"samples_per_gpu", point.chosen().samples_per_gpu},
                      {"forms", forms}});
  }
  const json out = {{"label", kLabel},
                    {"config", plan.config},
                    {"cluster", cluster},
                    {"parameters", plan.model.parameters()},
                    {"forward_flops_per_sample", plan.model.flops()},
                    {"activation_bytes_per_sample", plan.model.activation_bytes},
                    {"points", points}};
  io::write_file_atomically(file, out.dump(2) + "\n");
}

void write_svg(const Plan& plan, const std::string& file) {
  const auto curve = [&](const std::string& name, auto value, plot::CurveStroke stroke = plot::CurveStroke::solid) {
    plot::PlotCurve c{name, {}, {}};
    c.stroke = stroke;
    for (const Point& p : plan.points) {
      c.x.push_back(p.chosen().gpus);
      c.y.push_back(value(p));
    }
    return c;
  };
  const double one = plan.points[0].chosen().samples_per_s / plan.points[0].chosen().gpus;
  const auto axis = [](const char* label) { return plot::PlotAxis{label, plot::AxisScale::log}; };
  plot::PlotPanel speed{"speed (" + std::string("model") + ")", axis("GPUs"), axis("samples/s"), {}, {}};
  speed.curves = {curve("predicted", [](const Point& p) { return p.chosen().samples_per_s; }),
                  curve(
                      "perfect", [&](const Point& p) { return one * p.chosen().gpus; }, plot::CurveStroke::dashed)};
  plot::PlotPanel exposed{"exposed communication (model)", axis("GPUs"), axis("ms per step"), {}, {}};
  exposed.curves = {curve("batch norm", [](const Point& p) { return 1e3 * p.chosen().exposed_norm; }),
                    curve("loss", [](const Point& p) { return 1e3 * p.chosen().exposed_loss; }),
                    curve("gradients", [](const Point& p) { return 1e3 * p.chosen().exposed_gradients; }),
                    curve(
                        "whole step", [](const Point& p) { return 1e3 * p.chosen().step; }, plot::CurveStroke::dashed)};
  std::vector<plot::PlotPanel> panels = {speed, exposed};
  if (plan.points[0].forms.size() > 1) {
    plot::PlotPanel forms{"forms of the loss (model)", axis("GPUs"), axis("ms per step"), {}, {}};
    for (const dist::LossForm form : {dist::LossForm::official, dist::LossForm::covariance, dist::LossForm::gram}) {
      forms.curves.push_back(curve(dist::loss_form_name(form), [&](const Point& p) {
        for (const auto& [f, s] : p.forms) {
          if (f == form) return 1e3 * (s.exposed_loss + s.loss_compute);
        }
        return std::nan("");
      }));
    }
    panels.push_back(forms);
  }
  io::write_file_atomically(file, plot::svg_plot(panels));
}

void print_published() {
  Rows rows = {{"published", "GPUs", "measured", "model", "difference", ""}};
  for (const dist::PublishedPoint& p : dist::published_points()) {
    rows.push_back({p.what, std::to_string(p.gpus), fmt::format("{:.1f} %", 100 * p.published),
                    fmt::format("{:.1f} %", 100 * p.predicted),
                    fmt::format("{:+.1f}", 100 * (p.predicted - p.published)),
                    std::string(p.fitted ? "fitted to this: " : "predicted: ") + p.source});
  }
  fmt::print("{}fraction of perfect scaling from one GPU; pal help scale lists the fitted parameters\n",
             format_table(rows));
}

std::vector<int> doubling(int most) {
  std::vector<int> out;
  for (int n = 1; n <= most; n *= 2) out.push_back(n);
  return out;
}

}  // namespace

int cmd_plan(const std::vector<std::string>& arguments, Context&) {
  PlanArguments args;
  CLI::App app(
      "Predicts how a run scales: step time, exposed communication, memory, loading, checkpoints. A model, not a "
      "measurement.",
      "pal plan");
  app.add_option("CONFIG", args.config, "YAML config");
  app.add_option("KEY=VALUE", args.overrides, "settings that override the config");
  app.add_option("--cluster", args.cluster, "a100-8, h100-8, p100-4, local, or a YAML file (pal help scale)");
  app.add_option("--gpus", args.gpus, "numbers of GPUs; default 1, 2, 4 to 4096")
      ->check(CLI::Range(1, 1000000))
      ->delimiter(',');
  app.add_option("--samples-per-gpu", args.samples_per_gpu,
                 "samples per GPU, so that the batch grows with the GPUs; default: train.global_batch of the config")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--json", args.json, "also write the numbers to this file");
  app.add_option("--svg", args.svg, "also draw the curves to this file");
  app.add_flag("--published", args.published, "compare the model with published measurements");
  app.add_flag("--describe", args.description, "print the cluster as a YAML file that you can change");
  app.footer(
      "Examples:\n"
      "  pal plan configs/imagenet-vicreg.yaml --cluster a100-8 --svg plan.svg\n"
      "  pal plan configs/imagenet-vicreg.yaml train.precision=bf16 --samples-per-gpu 32 --gpus 8,64,512,4096\n"
      "  pal plan --cluster h100-8 --describe > mine.yaml\n"
      "  pal plan --published");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (args.published) print_published();
  if (args.description) std::fputs(dist::cluster_text(dist::read_cluster(args.cluster)).c_str(), stdout);
  if (args.config.empty()) {
    PAL_CHECK(args.published || args.description, "pal plan needs a config", "none is given",
              "give one, or --published or --describe");
    return 0;
  }
  if (args.gpus.empty()) args.gpus = doubling(4096);
  std::sort(args.gpus.begin(), args.gpus.end());

  const Plan plan = make_plan(args);
  fmt::print("{} on {} ({}): {}\n", args.config, plan.cluster.name, plan.cluster.gpu, kLabel);
  fmt::print(
      "{:.1f} M parameters, {:.2f} GFLOP forward and {:.0f} MB for backward per sample (all its views), taken from "
      "the model itself\n\n",
      static_cast<double>(plan.model.parameters()) / 1e6, plan.model.flops() / 1e9, plan.model.activation_bytes / 1e6);
  print_steps(plan);
  print_forms(plan);
  const int asked = args.gpus.back(), shown = plan.points.back().chosen().gpus;
  if (shown < asked)
    fmt::print("more than {} GPUs have less than one sample each: use --samples-per-gpu to let the batch grow\n",
               shown);
  if (!args.json.empty()) write_json(plan, args.json);
  if (!args.svg.empty()) write_svg(plan, args.svg);
  return 0;
}

}  // namespace pal::launch
