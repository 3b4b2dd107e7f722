// cli: parses the arguments of a command with CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pal::launch {

// `args` are the arguments after the command's name; the app's name is the whole command, "pal train". A negative
// result: run the command. Otherwise the command ends with this exit code, because --help was printed (with the app's
// footer, which holds an example). A wrong argument throws Error (usage).
int parse_arguments(CLI::App& app, std::vector<std::string> args);

}  // namespace pal::launch
