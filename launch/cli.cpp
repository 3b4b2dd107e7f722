#include "launch/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "core/config/suggest.h"
#include "kernels/base/error.h"

namespace pal::launch {
namespace {

// Breaks lines of more than 120 columns at blanks. The rest of an option's description stays in its column.
std::string wrapped(const std::string& text) {
  constexpr size_t kColumns = 120, kDescription = 30;  // where CLI11 begins the descriptions
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const bool option = line.size() > kDescription && line.substr(kDescription - 2, 2) == "  ";
    const size_t indent = option ? kDescription : 0;
    while (line.size() > kColumns) {
      const size_t blank = line.rfind(' ', kColumns);
      if (blank == std::string::npos || blank <= indent) break;
      out += line.substr(0, blank) + "\n";
      line = std::string(indent, ' ') + line.substr(blank + 1);
    }
    out += line + "\n";
  }
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
    std::fputs(wrapped(app.help()).c_str(), stdout);  // of the subcommand, when one was given
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
