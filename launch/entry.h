// entry: how a program of PAL starts and ends: it runs one command, and every error ends here, as a sentence and an
// exit code.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/error.h"

namespace pal::dist {
class World;
}

namespace pal::launch {

// What run_program owns during a command. It closes the world after the command, and ends all ranks after an error.
struct Context {
  std::string program;                 // path of this binary, for commands that start ranks
  std::unique_ptr<dist::World> world;  // set by start_world

  Context();
  ~Context();
  dist::World& start_world();  // Collective.
};

// Any exception as a sentence and an exit code.
Error as_error(const std::exception_ptr& thrown);

// `args` are the arguments after the command's name. Returns the exit code; throws errors.
using CommandFunction = int (*)(const std::vector<std::string>& args, Context& context);

// main() of a program: runs the command with all arguments. Errors are printed; with several ranks all of them are
// ended.
int run_program(int argc, char** argv, CommandFunction command);

}  // namespace pal::launch
