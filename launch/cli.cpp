#include "launch/cli.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "kernels/base/error.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

constexpr size_t kDescriptions = 30;  // the column where CLI11 begins the descriptions of options

// A line of CLI11's help in lines that fit the page. An example stays one line, because people paste it.
std::string fitted(const std::string& line) {
  if (line.size() <= kPageColumns || line.rfind("  pal ", 0) == 0) return line + "\n";
  size_t head = line.find_first_not_of(' ');
  if (head > 0 && line[kDescriptions - 1] == ' ') head = kDescriptions;
  std::string out = line.substr(0, head);
  for (const std::string& part : broken_lines(line.substr(head), kPageColumns - head)) {
    if (out.size() > head) out += std::string(head, ' ');
    out += part + "\n";
  }
  return out;
}

std::string help_text(const CLI::App& app) {
  std::string out;
  std::istringstream lines(app.help());  // of the subcommand, when one was given
  for (std::string line; std::getline(lines, line);) out += fitted(line);
  return out;
}

}  // namespace

int parse_arguments(CLI::App& app, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());  // CLI11 reads them from the back
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    std::fputs(help_text(app).c_str(), stdout);
    return static_cast<int>(Exit::ok);
  } catch (const CLI::ParseError& e) {
    throw Error(Exit::usage, std::string(e.what()) + "; see " + app.get_name() + " --help");
  }
  return -1;
}

}  // namespace pal::launch
