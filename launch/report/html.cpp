#include "launch/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/data/image/png.h"

namespace pal::launch {
namespace {

// One column on a narrow screen, two on a wide one; in print black on white, and no figure is cut by a page.
constexpr const char* kStyle = R"css(
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, Helvetica, Arial, sans-serif; color: #1a1a1a; background: #f4f5f7; margin: 0; }
main { max-width: 1180px; margin: 0 auto; padding: 20px; }
h1 { font-size: 26px; margin: 8px 0 2px; }
h2 { font-size: 19px; margin: 0 0 12px; }
h3 { font-size: 15px; margin: 18px 0 6px; }
p.lead { color: #555; margin: 0 0 14px; }
nav { margin: 0 0 14px; }
nav a { display: inline-block; margin: 0 14px 4px 0; }
a { color: #0060a0; }
section { background: #fff; border: 1px solid #dcdfe4; border-radius: 8px; padding: 16px 18px; margin: 0 0 16px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; }
th, td { text-align: left; padding: 4px 12px 4px 0; border-bottom: 1px solid #e6e8ec; vertical-align: top; }
th { color: #555; font-weight: 600; }
th, td.n { white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 14px; }
figure { margin: 0; break-inside: avoid; }
figure svg { display: block; max-width: 100%; height: auto; }
figcaption { font-size: 13px; color: #444; margin-top: 4px; }
summary { cursor: pointer; }
code, pre { font: 12.5px/1.45 ui-monospace, Menlo, Consolas, monospace; }
code { background: #f0f1f4; padding: 1px 4px; border-radius: 4px; overflow-wrap: anywhere; }
pre { background: #f7f8fa; border: 1px solid #e6e8ec; border-radius: 6px; padding: 10px; overflow-x: auto;
  white-space: pre-wrap; }
.near { display: flex; flex-wrap: wrap; gap: 6px 8px; margin: 0 0 10px; align-items: flex-start; }
.near figure { width: 84px; text-align: center; }
.near img { width: 72px; height: 72px; object-fit: contain; border: 3px solid #ccc; border-radius: 6px;
  background: #fff; image-rendering: auto; }
.near .same img { border-color: #009E73; }
.near .other img { border-color: #D55E00; }
.near .query img { border-color: #222; }
.near figcaption { font-size: 11.5px; line-height: 1.25; overflow-wrap: anywhere; }
td img { width: 44px; height: 44px; object-fit: contain; vertical-align: middle; border: 1px solid #ccc;
  border-radius: 4px; }
.note { border-left: 4px solid #E69F00; background: #fff8e8; padding: 6px 10px; margin: 6px 0; }
@media (max-width: 560px) { main { padding: 10px; } section { padding: 12px; } }
@media print {
  body { background: #fff; font-size: 11pt; }
  main { max-width: none; padding: 0; }
  section { border: 0; padding: 0; margin: 0 0 10mm; }
  h2, h3 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; }
  .scroll { overflow: visible; }
  nav { display: none; }
  tr, .near { break-inside: avoid; }
}
)css";

constexpr size_t kShortCommand = 160;  // longer ones are collapsed

bool is_number(const std::string& cell) {
  return !cell.empty() &&
         (std::isdigit(static_cast<unsigned char>(cell[0])) || ((cell[0] == '-' || cell[0] == '+') && cell.size() > 1));
}

}  // namespace

std::string html_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return "";
  std::vector<bool> numeric(rows[0].size(), rows.size() > 1);
  for (size_t r = 1; r < rows.size(); ++r) {
    for (size_t c = 0; c < rows[r].size() && c < numeric.size(); ++c)
      numeric[c] = numeric[c] && (is_number(rows[r][c]) || rows[r][c].empty() || rows[r][c] == "-");
  }
  std::string out = "<div class=\"scroll\"><table>\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    out += "<tr>";
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const char* tag = r == 0 ? "th" : "td";
      out += fmt::format("<{0}{1}>{2}</{0}>", tag, c < numeric.size() && numeric[c] ? " class=\"n\"" : "",
                         html_escaped(rows[r][c]));
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string html_figure(const std::string& body, const std::string& caption, const std::vector<std::string>& commands) {
  std::string made_by;
  for (const std::string& command : commands)
    made_by += (made_by.empty() ? "" : "<br>") + ("<code>" + html_escaped(command) + "</code>");
  if (made_by.size() > kShortCommand)
    made_by = fmt::format("<details><summary>made by {}</summary>{}</details>",
                          commands.size() == 1 ? "this command" : fmt::format("{} commands", commands.size()), made_by);
  else if (!made_by.empty())
    made_by = "<br>" + made_by;
  return "<figure>" + body + "<figcaption>" + html_escaped(caption) + made_by + "</figcaption></figure>\n";
}

std::string html_picture(const data::Picture& picture, int shown, const std::string& title) {
  data::Picture small = picture;
  const int32_t longer = std::max(picture.height, picture.width);
  const int32_t most = 2 * shown;  // enough for high-resolution screens
  if (longer > most)
    small = data::resize_picture(picture, std::max(1, picture.height * most / longer),
                                 std::max(1, picture.width * most / longer));
  const std::vector<uint8_t> png = data::encode_png(small.pixels.data(), small.height, small.width, small.channels);
  return fmt::format("<img src=\"data:image/png;base64,{}\" alt=\"{}\">", base64(png), html_escaped(title));
}

std::string html_section(const std::string& id, const std::string& title, const std::string& body) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, html_escaped(title), body);
}

std::string html_page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>" +
         html_escaped(title) + "</title>\n<style>" + kStyle + "</style></head>\n<body><main>\n" + body +
         "</main></body></html>\n";
}

std::string base64(const std::vector<uint8_t>& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < left ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= left ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace pal::launch
