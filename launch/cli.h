// cli: how a command reads its arguments: CLI11, with our errors and our help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pal::launch {

// `args` is what stands after the command's name; the app's name is the whole command, "pal train". Below 0: the command
// shall run; otherwise it is done with this exit code (--help was printed, with the app's footer, which holds an
// example). A wrong argument throws Error (usage).
int parse_arguments(CLI::App& app, std::vector<std::string> args);

}  // namespace pal::launch
