#include "core/plot/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/plot/svg.h"
#include "kernels/base/error.h"

namespace pal::plot {
namespace {

constexpr double kWidth = 360, kHeight = 230;  // of the axes
constexpr double kLeft = 70, kBottom = 46, kRight = 22, kRightAxis = 60, kLegendLine = 18, kTitle = 22;
constexpr size_t kPanelsInARow = 3;
constexpr size_t kManyBands = 4;  // above that they are drawn fainter, or they hide each other

constexpr double kMargin = 0.04;  // of an axis, beyond the values

// One axis on the page: value → pixel.
struct PlacedAxis {
  double low, high, from, to;
  AxisScale scale;
  double at(double value) const {
    const auto f = [&](double v) { return scale == AxisScale::log ? std::log10(v) : v; };
    return from + (to - from) * (f(value) - f(low)) / (f(high) - f(low));
  }
  bool shows(double value) const { return std::isfinite(value) && (scale == AxisScale::linear || value > 0); }
};

// The range of an axis: as requested, else the range of the values plus, on a linear axis, `margin` of it on either
// side, so that no value lies on the frame. A range of positive values does not extend below 0.
PlacedAxis place(const PlotAxis& axis, const std::vector<double>& values, double from, double to, double margin) {
  PlacedAxis placed{INFINITY, -INFINITY, from, to, axis.scale};
  for (double v : values) {
    if (!placed.shows(v)) continue;
    placed.low = std::min(placed.low, v);
    placed.high = std::max(placed.high, v);
  }
  if (!(placed.low <= placed.high)) placed.low = axis.scale == AxisScale::log ? 0.1 : 0, placed.high = 1;
  if (placed.low == placed.high) {
    const double half = std::abs(placed.low) / 2;
    placed.low = axis.scale == AxisScale::log ? placed.low / 2 : placed.low - half;
    placed.high = axis.scale == AxisScale::log ? placed.high * 2 : half > 0 ? placed.high + half : 1;  // 0 is the floor
  }
  if (axis.scale == AxisScale::linear) {
    const double room = margin * (placed.high - placed.low);
    placed.low = placed.low >= 0 ? std::max(0.0, placed.low - room) : placed.low - room;
    placed.high += room;
  }
  if (axis.low) placed.low = *axis.low;
  if (axis.high) placed.high = *axis.high;
  PAL_CHECK(placed.low < placed.high && (axis.scale == AxisScale::linear || placed.low > 0),
            "plot: the lower end of an axis is {}", placed.low,
            "give a lower end below the upper one, above 0 on a log axis");
  return placed;
}

void draw_frame(SvgText& out, const PlotPanel& panel, const PlacedAxis& x, const PlacedAxis& y) {
  for (double v : axis_ticks(x.low, x.high, x.scale, 6)) {
    out.line(x.at(v), y.from, x.at(v), y.to, "class=\"grid\"");
    out.text(x.at(v), y.from + 16, tick_text(v, x.scale), "text-anchor=\"middle\" class=\"tick\"");
  }
  for (double v : axis_ticks(y.low, y.high, y.scale, 5)) {
    out.line(x.from, y.at(v), x.to, y.at(v), "class=\"grid\"");
    out.text(x.from - 6, y.at(v) + 4, tick_text(v, y.scale), "text-anchor=\"end\" class=\"tick\"");
  }
  out.rectangle(x.from, y.to, x.to - x.from, y.from - y.to, "fill=\"none\" stroke=\"#333\"");
  out.text((x.from + x.to) / 2, y.from + 36, panel.x.label, "text-anchor=\"middle\"");
  out.turned_text(x.from - 54, (y.from + y.to) / 2, panel.y.label);
}

void draw_right_axis(SvgText& out, const PlotAxis& axis, const PlacedAxis& x, const PlacedAxis& y) {
  for (double v : axis_ticks(y.low, y.high, y.scale, 5)) {
    out.line(x.to, y.at(v), x.to + 4, y.at(v), "stroke=\"#333\"");
    out.text(x.to + 7, y.at(v) + 4, tick_text(v, y.scale), "class=\"tick\"");
  }
  out.turned_text(x.to + 46, (y.from + y.to) / 2, axis.label);
}

struct PointRun {
  size_t begin, end;
};
// The stretches of a curve without gaps.
std::vector<PointRun> runs(const PlotCurve& c, const PlacedAxis& x, const PlacedAxis& y) {
  std::vector<PointRun> all;
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (!x.shows(c.x[i]) || !y.shows(c.y[i])) continue;
    if (all.empty() || all.back().end != i) all.push_back({i, i});
    all.back().end = i + 1;
  }
  return all;
}

int color_number(const PlotCurve& c, size_t place) { return c.color < 0 ? static_cast<int>(place) : c.color; }

std::string dashes(const PlotCurve& c, int color) {
  if (c.stroke == CurveStroke::dashed) return " stroke-dasharray=\"6 4\"";
  return color < kSvgColors ? "" : " stroke-dasharray=\"2 2\"";
}

void draw_curve(SvgText& out, const PlotCurve& c, int number, double band_opacity, const PlacedAxis& x,
                const PlacedAxis& y) {
  const std::string color = svg_color(number);
  PAL_ASSERT(c.x.size() == c.y.size() && (c.spread.empty() || c.spread.size() == c.y.size()),
             "a curve has as many x as y");
  const auto inside = [&](double v) { return std::clamp(y.at(v), std::min(y.from, y.to), std::max(y.from, y.to)); };
  for (const PointRun& run : runs(c, x, y)) {
    if (!c.spread.empty()) {
      std::string band;
      const auto edge = [&](size_t i, double v) {
        band += fmt::format("{:.2f},{:.2f} ", x.at(c.x[i]), y.shows(v) ? inside(v) : y.from);
      };
      for (size_t i = run.begin; i < run.end; ++i) edge(i, c.y[i] + c.spread[i]);
      for (size_t i = run.end; i-- > run.begin;) edge(i, c.y[i] - c.spread[i]);
      out.raw("<polygon points=\"" + band + "\" fill=\"" + color +
              fmt::format("\" fill-opacity=\"{}\"/>", band_opacity));
    }
    std::string line;
    for (size_t i = run.begin; i < run.end; ++i) {
      if (c.stroke == CurveStroke::dots || run.end - run.begin == 1) out.mark(x.at(c.x[i]), inside(c.y[i]), number);
      line += fmt::format("{:.2f},{:.2f} ", x.at(c.x[i]), inside(c.y[i]));
    }
    if (c.stroke == CurveStroke::dots) continue;
    out.raw("<polyline points=\"" + line + "\" fill=\"none\" stroke=\"" + color + "\" stroke-width=\"1.8\"" +
            dashes(c, number) + "/>");
  }
}

// Names with a sample of their stroke, as many to a line as fit. Returns the lines it took.
int draw_legend(SvgText* out, const PlotPanel& panel, double left, double top) {
  double at = 0;
  int lines = 0;
  for (size_t k = 0; k < panel.curves.size(); ++k) {
    const PlotCurve& c = panel.curves[k];
    if (c.name.empty()) continue;
    const double width = 40 + 6.6 * static_cast<double>(svg_characters(c.name));
    if (lines == 0 || at + width > kWidth) {
      ++lines;
      at = 0;
    }
    if (out != nullptr) {
      const double y = top + kLegendLine * (lines - 1) + 9;
      const int number = color_number(c, k);
      const std::string color = svg_color(number);
      if (c.stroke == CurveStroke::dots)
        out->mark(left + at + 10, y, number);
      else
        out->line(left + at, y, left + at + 20, y, "stroke=\"" + color + "\" stroke-width=\"2.4\"" + dashes(c, number));
      out->text(left + at + 25, y + 4, c.name, "class=\"tick\"");
    }
    at += width;
  }
  return lines;
}

bool has_right(const PlotPanel& panel) {
  return std::any_of(panel.curves.begin(), panel.curves.end(),
                     [](const PlotCurve& c) { return c.side == CurveSide::right; });
}

double panel_width(const PlotPanel& panel) { return kLeft + kWidth + (has_right(panel) ? kRightAxis : kRight); }

void draw_panel(SvgText& out, const PlotPanel& panel, double left, double top, double legend_height) {
  const double x0 = left + kLeft, y0 = top + kTitle + legend_height;
  std::vector<double> xs, ys[2];
  for (const PlotCurve& c : panel.curves) {
    xs.insert(xs.end(), c.x.begin(), c.x.end());
    std::vector<double>& values = ys[c.side == CurveSide::right];
    for (size_t i = 0; i < c.y.size(); ++i) {
      const double spread = c.spread.empty() ? 0 : c.spread[i];
      values.push_back(c.y[i] + spread);
      values.push_back(c.y[i] - spread);
    }
  }
  const bool dots = std::any_of(panel.curves.begin(), panel.curves.end(),
                                [](const PlotCurve& c) { return c.stroke == CurveStroke::dots; });
  const PlacedAxis x = place(panel.x, xs, x0, x0 + kWidth, dots ? kMargin : 0);  // lines may begin and end at the frame
  const PlacedAxis y[2] = {place(panel.y, ys[0], y0 + kHeight, y0, kMargin),
                           place(panel.right, ys[1], y0 + kHeight, y0, kMargin)};
  if (!panel.title.empty())
    out.text(x0 + kWidth / 2, top + 14, panel.title, "text-anchor=\"middle\" font-weight=\"bold\"");
  draw_legend(&out, panel, x0, top + kTitle);
  draw_frame(out, panel, x, y[0]);
  if (has_right(panel)) draw_right_axis(out, panel.right, x, y[1]);
  const auto bands =
      std::count_if(panel.curves.begin(), panel.curves.end(), [](const PlotCurve& c) { return !c.spread.empty(); });
  for (size_t k = 0; k < panel.curves.size(); ++k) {
    const PlotCurve& c = panel.curves[k];
    draw_curve(out, c, color_number(c, k), static_cast<size_t>(bands) > kManyBands ? 0.07 : 0.2, x,
               y[c.side == CurveSide::right]);
  }
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, AxisScale scale, int count) {
  std::vector<double> ticks;
  if (scale == AxisScale::log) {
    const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9)),
              last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
    const int step = std::max(1, (last - first + count) / count);
    for (int e = first; e <= last; e += step) ticks.push_back(std::pow(10.0, e));
    if (ticks.size() >= 2) return ticks;
    ticks.clear();  // less than two decades: round numbers
  }
  const double raw = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  const double step = power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10);
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    ticks.push_back(k == 0 ? 0 : k * step);
  return ticks;
}

std::string tick_text(double value, AxisScale scale) {
  if (scale == AxisScale::log) {
    const double power = std::log10(value);
    if (std::abs(power - std::round(power)) < 1e-9 && (power < -2.5 || power > 3.5)) {
      static const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
      std::string text = "10";
      for (char c : fmt::format("{}", static_cast<int>(std::round(power)))) text += c == '-' ? "⁻" : digits[c - '0'];
      return text;
    }
  }
  return fmt::format("{:.6g}", value);
}

std::string svg_plot(const std::vector<PlotPanel>& panels) {
  double width = 0, row_width = 0;
  int legend = 0;
  for (size_t k = 0; k < panels.size(); ++k) {
    row_width = (k % kPanelsInARow == 0 ? 0 : row_width) + panel_width(panels[k]);
    width = std::max(width, row_width);
    legend = std::max(legend, draw_legend(nullptr, panels[k], 0, 0));
  }
  const double legend_height = legend * kLegendLine + 4, row_height = kTitle + legend_height + kHeight + kBottom;
  SvgText out(width, row_height * static_cast<double>((panels.size() + kPanelsInARow - 1) / kPanelsInARow));
  double left = 0;
  for (size_t k = 0; k < panels.size(); ++k) {
    if (k % kPanelsInARow == 0) left = 0;
    draw_panel(out, panels[k], left, row_height * static_cast<double>(k / kPanelsInARow), legend_height);
    left += panel_width(panels[k]);
  }
  return out.finish();
}

}  // namespace pal::plot
