// experiment: the figures of the paper's controlled experiments: trials, their mean and standard deviation.
//
// Order: a trial is a function of (options, seed, trial number). Ranks and threads share the trials and combine them in
//   order, so that results depend on neither.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/comm/comm.h"
#include "core/plot/plot.h"
#include "core/theory/kernel_method.h"
#include "core/theory/toy_data.h"

namespace pal::theory {

struct ExperimentOptions {
  ToyKind dataset = ToyKind::circles;
  int64_t n = 150, test = 1000;
  double noise = 0;  // of the points
  KernelOptions kernel;
  double cutoff_scale = 1e-5;      // kernel.cutoff = cutoff_scale / rows
  int64_t steps = 80, batch = 10;  // of the sweep
  int64_t trials = 100;
  int64_t orders = 1;  // label orders per data set (interpolation)
  int64_t views = 1;   // (interpolation)
  double view_noise = 0.1;
  std::vector<double> alphas = {};  // (interpolation)
  int64_t landmarks = 1000;         // (scale)
  int64_t network_steps = 1200;     // of gradient descent (network)
  uint64_t seed = 0;
  int threads = 1;
};

// The measurements of one trial, (series, x) each.
struct TrialCurves {
  Matrix error, mse, also;
};

struct FigureSpec {
  std::string name, title, x_label;
  ExperimentOptions defaults;
  std::string also_label;  // label of the third group of curves with its unit; "" without one
  std::vector<std::string> (*series)(const ExperimentOptions&);
  std::vector<std::string> (*also_series)(const ExperimentOptions&);
  std::vector<double> (*x)(const ExperimentOptions&);
  void (*trial)(TrialCurves& out, const ExperimentOptions&, const ToySet& test, int64_t trial);
  plot::AxisScale x_scale = plot::AxisScale::linear;
};
// active, contrastive, interpolation, missing, noise; network, scale.
const std::vector<FigureSpec>& figures();
const FigureSpec& figure(const std::string& name);  // throws Error (usage) with the nearest name

// The mean and the standard deviation over trials.
struct CurveStatistics {
  std::string series;
  std::vector<double> x, mean, std;
};
struct ExperimentResult {
  std::vector<CurveStatistics> error, mse, also;
  int64_t trials = 0;
};

// Throws Error (usage) for invalid sizes.
void check_experiment(const FigureSpec& figure, const ExperimentOptions& options);
ExperimentOptions with_dataset(const FigureSpec& figure, ToyKind dataset);  // the defaults on this data set
ToySet test_set(const ExperimentOptions& options);
// The random stream of a trial, the same on every rank and thread.
Random trial_random(const ExperimentOptions& options, int64_t trial, uint32_t what);
// Collective. Every rank gets the result. Calls `progress` with the number of this rank's finished trials.
ExperimentResult run_figure(const FigureSpec& figure, const ExperimentOptions& options, comm::Comm& comm,
                            const std::function<void(int64_t done, int64_t total)>& progress = {});

// CSV with the columns dataset,series,x,mean,std,trials.
std::string experiment_csv(const std::vector<std::pair<std::string, std::vector<CurveStatistics>>>& datasets,
                           int64_t trials);

// snapshots: pictures of one trial of the active experiment after some questions (the paper's figures 4 and 8): level
// lines of the third coordinate, the classes of the optimal probe, and the graph.
struct SnapshotPictures {
  std::string representation;  // SVG; "" for data that is not in the plane
  std::string graph;           // SVG
};
SnapshotPictures draw_snapshots(const ExperimentOptions& options);

}  // namespace pal::theory
