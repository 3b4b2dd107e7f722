#include "launch/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

#include "kernels/base/printable.h"

namespace pal::launch {
namespace {

constexpr int kBarWidth = 24;
constexpr double kRedrawSeconds = 0.1;
constexpr size_t kNarrowestText = 30;  // columns that the last column of a table keeps

int terminal_columns() {
  if (const char* columns = std::getenv("PAL_TERMINAL")) return std::atoi(columns);
  if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr || !isatty(STDOUT_FILENO)) return 0;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return 0;
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string first_characters(const std::string& text, int count) {
  size_t bytes = 0;
  for (; bytes < text.size(); ++bytes) {
    if ((text[bytes] & 0xC0) != 0x80 && count-- == 0) break;
  }
  return text.substr(0, bytes);
}

double seconds_between(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

size_t width(const std::string& text) {  // continuation bytes of UTF-8 take no place
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool looks_numeric(const std::string& cell) {
  return cell.empty() || std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+';
}

// Rows whose last cell is too wide for the page become several rows.
void break_last_column(std::vector<std::vector<std::string>>& rows, std::vector<size_t>& widths) {
  size_t left = 0;
  for (size_t c = 0; c + 1 < widths.size(); ++c) left += widths[c] + 2;
  if (left + widths.back() <= kPageColumns || left + kNarrowestText > kPageColumns) return;
  std::vector<std::vector<std::string>> broken;
  for (const std::vector<std::string>& row : rows) {
    broken.push_back(row);
    if (row.size() < widths.size() || left + width(row.back()) <= kPageColumns) continue;
    const std::vector<std::string> lines = broken_lines(row.back(), kPageColumns - left);
    broken.back().back() = lines.front();
    for (size_t i = 1; i < lines.size(); ++i) {
      broken.emplace_back(widths.size());
      broken.back().back() = lines[i];
    }
  }
  rows = broken;
  widths.back() = kPageColumns - left;
}

}  // namespace

std::string format_seconds(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::min(std::max(seconds, 0.0), 1e9)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string progress_line(const ProgressState& state, int columns) {
  const double share =
      state.total > 0 ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0) : 1.0;
  std::string line = printable(state.what);  // may hold the name of a run folder
  if (columns > 0) {
    const int full = static_cast<int>(share * kBarWidth);
    line += "  [" + std::string(full, '=') + std::string(kBarWidth - full, ' ') + "]";
  }
  line += fmt::format("  {}/{}  {:.0f} %", state.done, state.total, std::floor(share * 100));
  if (state.eta_seconds >= 0 && state.done < state.total) line += "  eta " + format_seconds(state.eta_seconds);
  if (!state.note.empty()) line += "  " + state.note;
  return columns > 0 ? first_characters(line, columns - 1) : line;
}

Progress::Progress(std::string what, int64_t total, double quiet_seconds)
    : what_(std::move(what)),
      total_(total),
      quiet_seconds_(quiet_seconds),
      columns_(terminal_columns()),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (first_ < 0) return;
  if (shown_ != done_) show(Clock::now());
  if (columns_ > 0) std::fputs("\n", stdout);
  std::fflush(stdout);
}

void Progress::update(int64_t done, const std::string& note) {
  const Clock::time_point now = Clock::now();
  const bool is_first = first_ < 0;
  if (is_first) {
    first_ = done;
    start_ = now;
  }
  done_ = done;
  note_ = note;
  if (is_first || seconds_between(last_, now) >= (columns_ > 0 ? kRedrawSeconds : quiet_seconds_)) show(now);
}

void Progress::show(Clock::time_point now) {
  ProgressState state{what_, note_, done_, total_};
  if (done_ > first_)
    state.eta_seconds =
        seconds_between(start_, now) / static_cast<double>(done_ - first_) * static_cast<double>(total_ - done_);
  const std::string line = progress_line(state, columns_);
  std::fputs(columns_ > 0 ? ("\r\x1b[K" + line).c_str() : (line + "\n").c_str(), stdout);
  std::fflush(stdout);
  last_ = now;
  shown_ = done_;
}

void ProgressRate::operator()(int64_t done, int64_t total) {
  if (!bar_) {
    bar_ = std::make_unique<Progress>(what_, total);
    first_ = done;
  }
  bar_->update(done, fmt::format("{:.0f} images/s", static_cast<double>(done - first_) / std::max(seconds(), 1e-9)));
}

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

std::vector<std::string> broken_lines(const std::string& text, size_t columns) {
  std::vector<std::string> lines = {""};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (width(line) + 1 + width(word) <= columns)
      line += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

std::string format_table(const std::vector<std::vector<std::string>>& unsafe) {
  std::vector<std::vector<std::string>> rows = unsafe;  // with names of classes and people
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < rows[r].size(); ++c) {
      if (c == widths.size()) {
        widths.push_back(0);
        right.push_back(rows.size() > 1);
      }
      widths[c] = std::max(widths[c], width(rows[r][c]));
      if (r > 0 && !looks_numeric(rows[r][c])) right[c] = false;
    }
  }
  if (!widths.empty() && !right.back()) break_last_column(rows, widths);
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - std::min(widths[c], width(row[c])), ' ');
      if (c > 0) line += "  ";
      line += right[c] ? space + row[c] : row[c] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace pal::launch
