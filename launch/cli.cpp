#include "launch/cli.h"

#include <algorithm>
#include <cstdio>

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

}  // namespace

int parse_arguments(CLI::App& app, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());  // CLI11 reads them from the back
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    std::fputs(wrapped(app.help()).c_str(), stdout);  // of the subcommand, when one was given
    return static_cast<int>(Exit::ok);
  } catch (const CLI::ParseError& e) {
    throw Error(Exit::usage, std::string(e.what()) + "; see " + app.get_name() + " --help");
  }
  return -1;
}

}  // namespace pal::launch
