// commands: the program's commands, one file each, and what main lends them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dist/comm/world.h"

namespace pal {

// What main owns for the length of a command, so that it can bring all ranks down after an error.
struct Context {
  std::string program;              // path of this binary, for commands that start ranks
  std::unique_ptr<World> world;     // set by start_world

  World& start_world() {            // Collective.
    if (!world) world = std::make_unique<World>();
    return *world;
  }
};

// `args` is what stands after the command's name. The result is the exit code; errors are thrown.
using CommandFunction = int (*)(const std::vector<std::string>& args, Context& context);

struct Command {
  const char* name;
  const char* summary;   // one line of `pal help`
  CommandFunction run;
};

const std::vector<Command>& commands();   // main.cpp: in the order of `pal help`

int cmd_train(const std::vector<std::string>& args, Context& context);
int cmd_data(const std::vector<std::string>& args, Context& context);
int cmd_graph(const std::vector<std::string>& args, Context& context);
int cmd_submit(const std::vector<std::string>& args, Context& context);
int cmd_plan(const std::vector<std::string>& args, Context& context);
int cmd_eval(const std::vector<std::string>& args, Context& context);
int cmd_export(const std::vector<std::string>& args, Context& context);
int cmd_embed(const std::vector<std::string>& args, Context& context);
int cmd_watch(const std::vector<std::string>& args, Context& context);
int cmd_runs(const std::vector<std::string>& args, Context& context);
int cmd_report(const std::vector<std::string>& args, Context& context);
int cmd_label(const std::vector<std::string>& args, Context& context);
int cmd_ask(const std::vector<std::string>& args, Context& context);
int cmd_answers(const std::vector<std::string>& args, Context& context);
int cmd_labels(const std::vector<std::string>& args, Context& context);
int cmd_reproduce(const std::vector<std::string>& args, Context& context);
int cmd_checkpoint(const std::vector<std::string>& args, Context& context);
int cmd_oracle(const std::vector<std::string>& args, Context& context);
int cmd_experiment(const std::vector<std::string>& args, Context& context);
int cmd_theory(const std::vector<std::string>& args, Context& context);
int cmd_config(const std::vector<std::string>& args, Context& context);
int cmd_doctor(const std::vector<std::string>& args, Context& context);
int cmd_bench(const std::vector<std::string>& args, Context& context);
int cmd_help(const std::vector<std::string>& args, Context& context);

}  // namespace pal
