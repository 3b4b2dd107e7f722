#include "launch/run/embedding_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/eval/representation.h"
#include "core/plot/plot.h"

namespace pal::launch {

std::string embedding_plot(const at::Tensor& features, const std::vector<int64_t>& labels,
                           const std::vector<std::string>& classes) {
  constexpr int64_t kShown = 3000;
  const eval::PlaneMap map = eval::principal_plane(features);
  plot::PlotPanel panel;
  panel.title = "features, principal components";
  panel.x.label = fmt::format("first, {:.0f} % of the variance", 100 * map.share[0]);
  panel.y.label = fmt::format("second, {:.0f} %", 100 * map.share[1]);
  const size_t kinds = labels.empty() ? 1 : std::max<size_t>(classes.size(), 1);
  panel.curves.resize(kinds);
  for (size_t c = 0; c < kinds; ++c) {
    panel.curves[c].name = labels.empty() || c >= classes.size() ? "" : classes[c];
    panel.curves[c].stroke = plot::CurveStroke::dots;
  }
  const at::Tensor points = map.points.contiguous();
  const int64_t n = points.size(0), shown = std::min(n, kShown);
  for (int64_t k = 0; k < shown; ++k) {
    const int64_t i = k * n / shown;
    const int64_t label = labels.empty() ? 0 : labels[static_cast<size_t>(i)];
    if (label < 0) continue;
    plot::PlotCurve& curve = panel.curves[static_cast<size_t>(label)];
    curve.x.push_back(points.const_data_ptr<double>()[2 * i]);
    curve.y.push_back(points.const_data_ptr<double>()[2 * i + 1]);
  }
  return plot::svg_plot({panel});
}

}  // namespace pal::launch
