// plot: curves with their spread, and pictures of matrices, as SVG for a paper or a report.
//
// One panel is a pair of axes; several are placed side by side, three to a row. The legend is above the axes, never on
// a curve. Curves past the last color reuse the colors, with short strokes; dots with another shape. A value that is
// not finite (on a log axis: not above 0) leaves a gap. Same input, same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pal::plot {

enum class AxisScale { linear, log };
struct PlotAxis {
  std::string label = {};  // with its unit
  AxisScale scale = AxisScale::linear;
  std::optional<double> low = {}, high = {};  // not given: what the curves need
};

enum class CurveStroke { solid, dashed, dots };  // dots: the points without a line
enum class CurveSide { left, right };            // which vertical axis it belongs to
struct PlotCurve {
  std::string name;  // of the legend
  std::vector<double> x, y;
  std::vector<double> spread = {};  // half the height of the band around y; none: no band
  CurveStroke stroke = CurveStroke::solid;
  CurveSide side = CurveSide::left;
  int color = -1;  // −1: its place among the panel's curves
};

struct PlotPanel {
  std::string title = {};
  PlotAxis x, y;
  PlotAxis right = {};  // drawn when a curve belongs to it
  std::vector<PlotCurve> curves;
};

// A matrix as colored cells, row 0 on top; colors go from blue (low) over white to red (high), or from white to black.
enum class PictureColors { diverging, gray };
struct PlotDot {
  double column = 0, row = 0;  // in cells
  int color = 0;
};
struct PlotPicture {
  std::string title;
  int64_t rows = 0, cols = 0;
  std::vector<double> values;  // (rows, cols)
  double low = -1, high = 1;
  int levels = 12;  // distinct colors, so that level lines show
  PictureColors colors = PictureColors::diverging;
  std::vector<PlotDot> dots = {};  // drawn over the cells
};

std::string svg_plot(const std::vector<PlotPanel>& panels);
// Rows of pictures, each row with its own name on the left; `caption` is printed below, one line per element.
struct PictureRow {
  std::string name;
  std::vector<PlotPicture> pictures;
};
std::string svg_pictures(const std::vector<PictureRow>& rows, const std::vector<std::string>& caption);

// Round values inside [low, high], about `count` of them; on a log axis powers of ten.
std::vector<double> axis_ticks(double low, double high, AxisScale scale, int count);
// "0.25", "150", "1e-06"; on a log axis "10⁻³".
std::string tick_text(double value, AxisScale scale);

}  // namespace pal::plot
