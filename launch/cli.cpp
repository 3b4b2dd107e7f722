#include "launch/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "core/config/suggest.h"
#include "kernels/base/error.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

constexpr size_t kDescriptions = 30;  // the column where CLI11 begins the descriptions of options

// A line of CLI11's help in lines that fit the page. An example stays one line, because people paste it. A list of
// choices may be broken after a comma.
std::string fitted(std::string line) {
  if (line.size() <= kPageColumns || line.rfind("  pal ", 0) == 0) return line + "\n";
  for (size_t at = 0; (at = line.find(',', at)) != std::string::npos; ++at) {
    if (at + 1 < line.size() && line[at + 1] != ' ') line.insert(at + 1, " ");
  }
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

// An argument that the command does not take, a subcommand that is missing, an option without its value; for the rest
// CLI11's own words.
std::string sentence(const CLI::App& app, const CLI::App& used, const CLI::ParseError& e) {
  const std::vector<std::string> left = app.remaining(true);
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  if (!subcommands.empty() && &used == &app) {
    std::vector<std::string> names;
    for (const CLI::App* sub : subcommands) names.push_back(sub->get_name());
    if (!left.empty()) return "unknown subcommand: " + left[0] + "; the nearest is " + config::suggest(left[0], names);
    return "a subcommand is missing: " + fmt::format("{}", fmt::join(names, ", "));
  }
  const auto option = std::find_if(left.begin(), left.end(), [](const std::string& s) { return s.starts_with("--"); });
  if (option != left.end()) {
    std::vector<std::string> names;
    for (const CLI::Option* known : used.get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
    return "unknown option: " + *option + "; the nearest is " + config::suggest(*option, names);
  }
  if (!left.empty()) return "unexpected argument: " + left[0];
  const std::string text = e.what();
  if (const size_t colon = text.find(": 1 required "); colon != std::string::npos)
    return text.substr(0, colon) + " needs a value";
  return text;
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
    const CLI::App* used = &app;
    std::string name = app.get_name();
    if (!app.get_subcommands().empty()) {
      used = app.get_subcommands().front();
      name += " " + used->get_name();
    }
    throw Error(Exit::usage, sentence(app, *used, e) + "; see " + name + " --help");
  }
  return -1;
}

}  // namespace pal::launch
