#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/plot/plot.h"
#include "core/theory/experiment.h"
#include "core/theory/figures.h"
#include "core/theory/one_thread.h"
#include "core/theory/query_game.h"

namespace pal::theory {
namespace {

constexpr int64_t kGrid = 96;
constexpr double kReach = 5;  // the circles have radii up to 4

Matrix plane_grid() {
  Matrix points(kGrid * kGrid, 2);
  for (int64_t i = 0; i < points.rows; ++i) {
    points(i, 0) = kReach * (2 * (static_cast<double>(i % kGrid) + 0.5) / kGrid - 1);
    points(i, 1) = kReach * (1 - 2 * (static_cast<double>(i / kGrid) + 0.5) / kGrid);  // y points up
  }
  return points;
}

std::vector<plot::PlotDot> plane_dots(const ToySet& set) {
  std::vector<plot::PlotDot> dots;
  for (int64_t i = 0; i < set.x.rows; ++i) {
    dots.push_back({kGrid * (set.x(i, 0) / kReach + 1) / 2, kGrid * (1 - set.x(i, 1) / kReach) / 2, set.y[i]});
  }
  return dots;
}

// The third coordinate of the representation, scaled to [−1, 1]; the free sign is chosen positive at the first point.
plot::PlotPicture level_lines(const Matrix& z, const std::string& title) {
  const int64_t column = std::min<int64_t>(2, z.cols - 1);
  plot::PlotPicture picture{
      .title = title, .rows = kGrid, .cols = kGrid, .values = std::vector<double>(z.rows), .levels = 13};
  double largest = 1e-300, sum = 0;
  for (int64_t i = 0; i < z.rows; ++i) {
    largest = std::max(largest, std::abs(z(i, column)));
    sum += z(i, column);
  }
  for (int64_t i = 0; i < z.rows; ++i) picture.values[i] = (sum < 0 ? -1 : 1) * z(i, column) / largest;
  return picture;
}

plot::PlotPicture probe_classes(const Matrix& scores, const ToySet& train) {
  plot::PlotPicture picture{.title = "",
                            .rows = kGrid,
                            .cols = kGrid,
                            .values = std::vector<double>(scores.rows),
                            .low = 0,
                            .high = 4,
                            .levels = 4,
                            .colors = plot::PictureColors::gray,
                            .dots = plane_dots(train)};
  for (int64_t i = 0; i < scores.rows; ++i) {
    const double* s = scores.row(i);
    // Light grays keep the points visible: classes use the lower half of the scale.
    picture.values[i] = static_cast<double>(std::max_element(s, s + kToyClasses) - s);
  }
  picture.high = 9;
  picture.levels = 9;
  return picture;
}

plot::PlotPicture graph_picture(const Matrix& graph, const std::vector<int>& labels, const std::string& title) {
  std::vector<int64_t> order(labels.size());  // by class, so that blocks are visible
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return labels[a] < labels[b]; });
  plot::PlotPicture picture{.title = title,
                            .rows = graph.rows,
                            .cols = graph.cols,
                            .values = std::vector<double>(graph.data.size()),
                            .levels = 3,
                            .colors = plot::PictureColors::gray};
  for (int64_t i = 0; i < graph.rows; ++i) {
    for (int64_t j = 0; j < graph.cols; ++j) picture.values[i * graph.cols + j] = graph(order[i], order[j]);
  }
  return picture;
}

}  // namespace

SnapshotPictures draw_snapshots(const ExperimentOptions& o) {
  const OneThread scope;
  Random data = trial_random(o, 0, kDataStream), choices = trial_random(o, 0, kChoiceStream);
  KernelOptions kernel = o.kernel;
  kernel.cutoff = o.cutoff_scale / static_cast<double>(o.n);
  KernelMethod method(toy_train(o.dataset, o.n, o.noise, data), test_set(o), kernel);
  const ToySet& train = method.train();
  CaptchaGame game(train.y, kToyClasses);
  const bool plane = o.dataset == ToyKind::circles;
  const Matrix points = plane ? plane_grid() : Matrix();
  plot::PictureRow levels{"third coordinate", {}}, probes{"optimal probe", {}}, graphs{"graph G", {}};
  Matrix graph(o.n, o.n);
  const int64_t last = o.steps - 1;
  for (int64_t step = 0; step <= last; ++step) {
    game.graph(graph, -1);
    const Matrix vectors = method.fit(graph);
    if (step == 0 || step == last / 8 || step == last / 4 || step == last) {
      const std::string title =
          fmt::format("{} queries, error {:.2f}", step * o.batch, method.downstream(vectors).error);
      graphs.pictures.push_back(graph_picture(graph, train.y, title));
      if (plane) {
        const Matrix z = method.represent(points, vectors);
        levels.pictures.push_back(level_lines(z, title));
        probes.pictures.push_back(probe_classes(product(z, method.test_probe(vectors)), train));
      }
    }
    game.answer(game.choose(method.predict_train(vectors, game.known()), o.batch, choices));
  }
  SnapshotPictures out;
  if (plane) {
    out.representation = plot::svg_pictures(
        {levels, probes},
        {"Above: the third coordinate of the representation, from −1 (blue) to 1 (red) of its largest value.",
         "Below: the class that the best linear probe gives to each place (gray levels), and the training points by "
         "class."});
  }
  out.graph = plot::svg_pictures(
      {graphs}, {"Points sorted by class. Black: known alike, white: known different, gray: not known."});
  return out;
}

}  // namespace pal::theory
