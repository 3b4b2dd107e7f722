// heat_map: matrices as colored cells, for plot.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/plot/plot.h"
#include "core/plot/svg.h"
#include "kernels/base/error.h"

namespace pal::plot {
namespace {

constexpr double kSide = 170, kGap = 18, kNameWidth = 34, kTitleHeight = 22, kCaptionLine = 18;

// The color of a share in [0, 1].
std::string cell_color(double share, PictureColors colors) {
  const auto mix = [](double from, double to, double s) {
    return static_cast<int>(std::lround(from + (to - from) * s));
  };
  if (colors == PictureColors::gray) {
    const int g = mix(255, 0, share);
    return fmt::format("#{:02x}{:02x}{:02x}", g, g, g);
  }
  const double s = std::abs(2 * share - 1);
  return share < 0.5 ? fmt::format("#{:02x}{:02x}{:02x}", mix(247, 33, s), mix(247, 102, s), mix(247, 172, s))
                     : fmt::format("#{:02x}{:02x}{:02x}", mix(247, 178, s), mix(247, 24, s), mix(247, 43, s));
}

int level_of(double value, const PlotPicture& p) {
  const double share = std::isfinite(value) ? std::clamp((value - p.low) / (p.high - p.low), 0.0, 1.0) : 0.5;
  return std::min(static_cast<int>(share * p.levels), p.levels - 1);
}

void draw_picture(SvgText& out, const PlotPicture& p, double left, double top) {
  PAL_ASSERT(static_cast<int64_t>(p.values.size()) == p.rows * p.cols && p.levels >= 2 && p.low < p.high,
             "a picture has rows × cols values");
  const double w = kSide / static_cast<double>(p.cols), h = kSide / static_cast<double>(p.rows);
  out.text(left + kSide / 2, top - 6, p.title, "text-anchor=\"middle\" class=\"tick\"");
  out.raw("<g shape-rendering=\"crispEdges\">");
  for (int64_t i = 0; i < p.rows; ++i) {
    // Equal neighbors are one rectangle.
    for (int64_t j = 0; j < p.cols;) {
      const int level = level_of(p.values[i * p.cols + j], p);
      int64_t end = j + 1;
      while (end < p.cols && level_of(p.values[i * p.cols + end], p) == level) ++end;
      out.rectangle(left + w * static_cast<double>(j), top + h * static_cast<double>(i),
                    w * static_cast<double>(end - j) + 0.05, h + 0.05,
                    "fill=\"" + cell_color(level / (p.levels - 1.0), p.colors) + "\"");
      j = end;
    }
  }
  out.raw("</g>");
  for (const PlotDot& dot : p.dots) out.circle(left + w * dot.column, top + h * dot.row, 1.5, svg_color(dot.color));
  out.rectangle(left, top, kSide, kSide, "fill=\"none\" stroke=\"#333\"");
}

}  // namespace

std::string svg_pictures(const std::vector<PictureRow>& rows, const std::vector<std::string>& caption) {
  size_t columns = 0;
  for (const PictureRow& row : rows) columns = std::max(columns, row.pictures.size());
  const double row_height = kTitleHeight + kSide + 10;
  SvgText out(kNameWidth + static_cast<double>(columns) * (kSide + kGap),
              static_cast<double>(rows.size()) * row_height + kCaptionLine * static_cast<double>(caption.size()) + 12);
  double top = kTitleHeight;
  for (const PictureRow& row : rows) {
    out.turned_text(kNameWidth - 14, top + kSide / 2, row.name);
    double left = kNameWidth;
    for (const PlotPicture& picture : row.pictures) {
      draw_picture(out, picture, left, top);
      left += kSide + kGap;
    }
    top += row_height;
  }
  for (const std::string& line : caption) {
    out.text(kNameWidth, top - 4, line, "class=\"tick\"");
    top += kCaptionLine;
  }
  return out.finish();
}

}  // namespace pal::plot
