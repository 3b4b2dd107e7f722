// plot: round ticks, curves at their values, bands, gaps, pictures, and well-formed XML for any text.
#include "core/plot/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "core/plot/svg.h"

namespace pal::plot {
namespace {

// Every tag is closed in the order it was opened.
bool well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find(' '));
    if (tag.back() == '/') continue;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else {
      open.push_back(name);
    }
  }
  return open.empty();
}

// The points of the n-th element of this kind.
std::vector<std::pair<double, double>> plot_points(const std::string& svg, const std::string& element, int n = 0) {
  size_t at = 0;
  for (int k = 0; k <= n; ++k) at = svg.find("<" + element + " points=\"", at) + 1;
  if (at == 0) return {};
  const char* p = svg.c_str() + svg.find('"', at) + 1;
  std::vector<std::pair<double, double>> out;
  while (*p != '"') {
    char* next = nullptr;
    const double x = std::strtod(p, &next), y = std::strtod(next + 1, &next);
    out.emplace_back(x, y);
    p = next + 1;
  }
  return out;
}

int occurrences(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Plot, TicksAreRoundAndInside) {
  EXPECT_EQ(axis_ticks(0, 800, AxisScale::linear, 6), (std::vector<double>{0, 100, 200, 300, 400, 500, 600, 700, 800}));
  EXPECT_EQ(axis_ticks(-0.3, 0.9, AxisScale::linear, 5).size(), 6u);
  EXPECT_EQ(axis_ticks(1e-4, 1, AxisScale::log, 5).size(), 5u);
  for (double low : {-7.3, 0.0, 1e-9, 123456.0}) {
    for (double width : {1e-6, 0.37, 42.0, 1e7}) {
      const auto ticks = axis_ticks(low, low + width, AxisScale::linear, 5);
      ASSERT_GE(ticks.size(), 2u);
      ASSERT_LE(ticks.size(), 9u);
      for (double t : ticks) EXPECT_TRUE(t >= low - 1e-6 * width && t <= low + width * (1 + 1e-6)) << t;
    }
  }
  EXPECT_EQ(tick_text(0.25, AxisScale::linear), "0.25");
  EXPECT_EQ(tick_text(1e-6, AxisScale::log), "10⁻⁶");
  EXPECT_EQ(tick_text(10, AxisScale::log), "10");
}

TEST(Plot, CurvesAreDrawnAtTheirValues) {
  PlotPanel panel{
      .title = "a < b & c", .x = {.label = "queries"}, .y = {.label = "error", .low = 0, .high = 1}, .curves = {}};
  panel.curves.push_back({.name = "active", .x = {0, 50, 100}, .y = {1, 0.5, 0}, .spread = {0, 0.25, 0}});
  const std::string svg = svg_plot({panel});
  EXPECT_TRUE(well_formed(svg)) << svg;
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  const auto line = plot_points(svg, "polyline");
  ASSERT_EQ(line.size(), 3u);
  EXPECT_NEAR(line[1].first, (line[0].first + line[2].first) / 2, 0.02);
  EXPECT_NEAR(line[1].second, (line[0].second + line[2].second) / 2, 0.02);
  EXPECT_GT(line[2].second, line[0].second);  // small values below
  const auto band = plot_points(svg, "polygon");
  ASSERT_EQ(band.size(), 6u);
  EXPECT_NEAR(band[4].second - band[1].second, (line[2].second - line[0].second) / 2, 0.05);
  for (const char* text : {">queries<", ">error<", ">active<", ">0.2<", ">100<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST(Plot, NothingLiesOnTheFrameUnlessItIsZero) {
  PlotPanel panel{.x = {}, .y = {}, .curves = {}};
  panel.curves.push_back({.name = "", .x = {0, 1, 2}, .y = {3, 5, 4}});
  const auto inner = plot_points(svg_plot({panel}), "polyline");
  panel.y = {.label = "", .low = 3, .high = 5};
  const auto asked = plot_points(svg_plot({panel}), "polyline");  // from frame to frame
  const double height = asked[0].second - asked[1].second;
  EXPECT_NEAR(inner[0].second, asked[0].second - height * 0.04 / 1.08, 0.02);
  EXPECT_NEAR(inner[1].second, asked[1].second + height * 0.04 / 1.08, 0.02);
  EXPECT_EQ(inner[0].first, asked[0].first);
  panel.y = {};
  panel.curves[0].y = {0, 2, 1};  // 0 stays the floor
  EXPECT_NEAR(plot_points(svg_plot({panel}), "polyline")[0].second, asked[0].second, 0.02);
}

TEST(Plot, LogAxesAreLogarithmic) {
  PlotPanel panel{
      .x = {.label = "T", .scale = AxisScale::log}, .y = {.label = "gap", .scale = AxisScale::log}, .curves = {}};
  panel.curves.push_back({.name = "", .x = {1, 10, 100}, .y = {1, 0.1, 0.01}});
  const auto line = plot_points(svg_plot({panel}), "polyline");
  ASSERT_EQ(line.size(), 3u);
  EXPECT_NEAR(line[1].first, (line[0].first + line[2].first) / 2, 0.02);
  EXPECT_NEAR(line[1].second, (line[0].second + line[2].second) / 2, 0.02);
}

TEST(Plot, NonFiniteValuesLeaveAGap) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  PlotPanel panel{.x = {}, .y = {}, .curves = {}};
  panel.curves.push_back({.name = "c", .x = {0, 1, 2, 3, 4}, .y = {1, 2, nan, 3, 4}});
  std::string svg = svg_plot({panel});
  EXPECT_EQ(occurrences(svg, "<polyline"), 2);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  panel.curves[0].y = {nan, nan, nan, nan, nan};  // no values still give a plot
  svg = svg_plot({panel});
  EXPECT_TRUE(well_formed(svg));
  EXPECT_EQ(occurrences(svg, "<polyline"), 0);
}

TEST(Plot, ASecondAxisHasAScaleOfItsOwn) {
  PlotPanel panel{.x = {.label = "p"}, .y = {.label = "error"}, .right = {.label = "components"}, .curves = {}};
  panel.curves.push_back({.name = "error", .x = {0, 1}, .y = {0, 1}});
  panel.curves.push_back({.name = "components", .x = {0, 1}, .y = {0, 70}, .side = CurveSide::right});
  const std::string svg = svg_plot({panel});
  EXPECT_EQ(plot_points(svg, "polyline", 0), plot_points(svg, "polyline", 1));
  EXPECT_NE(svg.find(">components</text>"), std::string::npos);
}

TEST(Plot, PicturesMergeEqualCells) {
  PlotPicture picture{.title = "G",
                      .rows = 2,
                      .cols = 4,
                      .values = {1, 1, 1, 1, -1, -1, 0, 1},
                      .levels = 3,
                      .colors = PictureColors::gray};
  const std::string svg = svg_pictures({{"graph", {picture}}}, {"black: alike"});
  EXPECT_TRUE(well_formed(svg));
  EXPECT_EQ(occurrences(svg, "fill=\"#000000\""), 2);  // the first row in one piece, and the last cell
  EXPECT_EQ(occurrences(svg, "fill=\"#808080\""), 1);
}

TEST(Plot, ThreePanelsInARowAndADifferentStrokeForEveryCurve) {
  PlotPanel panel{.x = {}, .y = {}, .curves = {}};
  for (int k = 0; k < 12; ++k) panel.curves.push_back({.name = "c", .x = {0, 1}, .y = {0.1 * k, 0.3}});
  const std::string svg = svg_plot({panel, panel, panel, panel});
  EXPECT_TRUE(well_formed(svg));
  const auto first = plot_points(svg, "polyline", 0), third = plot_points(svg, "polyline", 24),
             fourth = plot_points(svg, "polyline", 36);
  EXPECT_EQ(first[0].second, third[0].second);
  EXPECT_EQ(first[0].first, fourth[0].first);
  EXPECT_GT(fourth[0].second, first[0].second + 200);
  EXPECT_EQ(occurrences(svg, "stroke-dasharray=\"2 2\""), 4 * 2 * 2);  // the last two, with their names
}

TEST(Plot, TwentyKindsOfDotsLookDifferent) {
  PlotPanel panel{.x = {}, .y = {}, .curves = {}};
  std::set<std::string> marks;
  for (int k = 0; k < 20; ++k) {
    SvgText out(10, 10);
    const size_t before = SvgText(10, 10).finish().find("</svg>");
    out.mark(5, 5, k);
    marks.insert(out.finish().substr(before));
    panel.curves.push_back({.name = "", .x = {1.0 * k}, .y = {1}, .stroke = CurveStroke::dots});
  }
  EXPECT_EQ(marks.size(), 20u);
  const std::string svg = svg_plot({panel});
  EXPECT_TRUE(well_formed(svg));
  EXPECT_EQ(occurrences(svg, "<circle"), 10);
  EXPECT_EQ(occurrences(svg, "<polygon"), 10);
}

TEST(Plot, EqualValuesHaveAnAxisThatFitsThem) {
  PlotPanel panel{.x = {}, .y = {}, .curves = {}};
  panel.curves.push_back({.name = "", .x = {0, 1}, .y = {0, 0}});
  EXPECT_EQ(svg_plot({panel}).find(">-"), std::string::npos) << "a share of 0 has no negative ticks";
  panel.curves[0].y = {0.2, 0.2};
  const std::string svg = svg_plot({panel});
  EXPECT_EQ(svg.find(">-"), std::string::npos);
  EXPECT_NE(svg.find(">0.2<"), std::string::npos);
}

TEST(Plot, IsTheSameBytesForTheSameInput) {
  PlotPanel panel{.x = {}, .y = {}, .curves = {}};
  panel.curves.push_back({.name = "c", .x = {0, 1}, .y = {0.1, 0.3}});
  EXPECT_EQ(svg_plot({panel, panel}), svg_plot({panel, panel}));
}

}  // namespace
}  // namespace pal::plot
