// svg: the few SVG shapes that plots and pictures consist of.
#pragma once

#include <cstddef>
#include <string>

namespace pal::plot {

class SvgText {
 public:
  SvgText(double width, double height);
  // `style` are attributes: "stroke=\"#333\"". Text is escaped.
  void line(double x1, double y1, double x2, double y2, const std::string& style);
  void rectangle(double x, double y, double width, double height, const std::string& style);
  void circle(double x, double y, double radius, const std::string& color);
  // The mark of the curve `number` at a point: a color, and past the last color another shape.
  void mark(double x, double y, int number);
  void text(double x, double y, const std::string& text, const std::string& style);
  void turned_text(double x, double y, const std::string& text);  // centered, rotated by 90 degrees
  void raw(const std::string& element);
  std::string finish();  // the whole file; nothing can be added after it

 private:
  std::string out_;
};

// Colors that color-blind readers can distinguish, by number; they repeat after kSvgColors.
constexpr int kSvgColors = 10;
std::string svg_color(int index);
// Characters of UTF-8 text.
size_t svg_characters(const std::string& text);

}  // namespace pal::plot
