#include "core/plot/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace pal::plot {
namespace {

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

}  // namespace

SvgText::SvgText(double width, double height) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#111\">\n"
      "<style>.grid {{ stroke: #ddd; stroke-width: 1; }} .tick {{ font-size: 11.5px; }}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
}

void SvgText::line(double x1, double y1, double x2, double y2, const std::string& style) {
  out_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" {}/>\n", x1, y1, x2, y2, style);
}

void SvgText::rectangle(double x, double y, double width, double height, const std::string& style) {
  out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}/>\n", x, y, width, height,
                      style);
}

void SvgText::circle(double x, double y, double radius, const std::string& color) {
  out_ += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" fill=\"{}\"/>\n", x, y, radius, color);
}

void SvgText::mark(double x, double y, int number) {
  const std::string color = svg_color(number);
  const auto polygon = [&](std::initializer_list<std::pair<double, double>> corners) {
    out_ += "<polygon points=\"";
    for (const auto& [dx, dy] : corners) out_ += fmt::format("{:.2f},{:.2f} ", x + dx, y + dy);
    out_ += fmt::format("\" fill=\"{}\"/>\n", color);
  };
  switch (number / kSvgColors % 4) {
    case 0:
      return circle(x, y, 2.5, color);
    case 1:
      return polygon({{0, -3.6}, {3.4, 2.4}, {-3.4, 2.4}});
    case 2:
      return rectangle(x - 2.3, y - 2.3, 4.6, 4.6, "fill=\"white\" stroke=\"" + color + "\" stroke-width=\"1.4\"");
    default:
      return polygon({{-3.5, -1},
                      {-1, -1},
                      {-1, -3.5},
                      {1, -3.5},
                      {1, -1},
                      {3.5, -1},
                      {3.5, 1},
                      {1, 1},
                      {1, 3.5},
                      {-1, 3.5},
                      {-1, 1},
                      {-3.5, 1}});
  }
}

void SvgText::text(double x, double y, const std::string& text, const std::string& style) {
  out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", x, y, style, xml_escaped(text));
}

void SvgText::turned_text(double x, double y, const std::string& text) {
  out_ += fmt::format("<text transform=\"translate({:.2f},{:.2f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", x,
                      y, xml_escaped(text));
}

void SvgText::raw(const std::string& element) { out_ += element + "\n"; }

std::string SvgText::finish() { return std::move(out_) + "</svg>\n"; }

std::string svg_color(int index) {
  // Okabe and Ito's palette, the yellow left out, which does not show on white; then three dark and light tones.
  static constexpr std::array<const char*, kSvgColors> colors = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                                                                 "#56B4E9", "#444444", "#882255", "#B0A800", "#A8A8A8"};
  return colors[static_cast<size_t>(std::max(index, 0)) % colors.size()];
}

size_t svg_characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace pal::plot
