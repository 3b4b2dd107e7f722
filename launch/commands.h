// commands: the commands of the program; each has a file in launch/cmd.
#pragma once

#include <string>
#include <vector>

#include "launch/entry.h"

namespace pal::launch {

struct Command {
  const char* name;
  const char* summary;  // one line of `pal help`
  CommandFunction run;
};

const std::vector<Command>& commands();  // main.cpp: in the order of `pal help`

int cmd_start(const std::vector<std::string>& args, Context& context);
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

}  // namespace pal::launch
