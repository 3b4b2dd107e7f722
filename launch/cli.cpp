#include "launch/cli.h"

#include <algorithm>
#include <cstdio>

#include "kernels/base/error.h"

namespace pal::launch {

int parse_arguments(CLI::App& app, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());  // CLI11 reads them from the back
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);  // of the subcommand, when one was given
    return static_cast<int>(Exit::ok);
  } catch (const CLI::ParseError& e) {
    throw Error(Exit::usage, std::string(e.what()) + "; see " + app.get_name() + " --help");
  }
  return -1;
}

}  // namespace pal::launch
