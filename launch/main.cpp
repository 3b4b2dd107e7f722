// main: the table of commands.
#include <cstdio>

#include "core/config/suggest.h"
#include "kernels/base/error.h"
#include "launch/commands.h"

namespace pal::launch {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"start", "train on a folder of pictures: import, train, evaluate, report, label", cmd_start},
      {"train", "train an encoder on a similarity graph", cmd_train},
      {"submit", "train on a cluster: write and submit a SLURM job", cmd_submit},
      {"plan", "predict how a run scales to thousands of GPUs (a model)", cmd_plan},
      {"data", "make, show and check data sets", cmd_data},
      {"graph", "show and convert files of weighted pairs", cmd_graph},
      {"eval", "measure a trained encoder: probes, nearest neighbors, fine-tuning", cmd_eval},
      {"export", "write a trained encoder for Python, with torchvision's names", cmd_export},
      {"embed", "write the features of a data set", cmd_embed},
      {"watch", "show the progress of a run", cmd_watch},
      {"runs", "list runs, their state and the settings in which they differ", cmd_runs},
      {"report", "write an HTML page about runs", cmd_report},
      {"reproduce", "run the experiments behind a published table and print both", cmd_reproduce},
      {"label", "serve the labeling page: people answer in their browsers", cmd_label},
      {"ask", "choose a round of questions with the newest checkpoint", cmd_ask},
      {"answers", "show, export, import and undo answers", cmd_answers},
      {"labels", "export the class of every sample and where it comes from", cmd_labels},
      {"checkpoint", "list and check the checkpoints of a run", cmd_checkpoint},
      {"oracle", "compare oracles: error against questions and cost", cmd_oracle},
      {"experiment", "run the controlled experiments of the paper (CSV and SVG)", cmd_experiment},
      {"theory", "check every statement of the paper", cmd_theory},
      {"config", "show every setting of a config and where it is set", cmd_config},
      {"bench", "measure speed against a named peer", cmd_bench},
      {"doctor", "check whether this machine can train", cmd_doctor},
      {"help", "explain a topic", cmd_help},
  };
  return table;
}

namespace {

int dispatch(const std::vector<std::string>& args, Context& context) {
  const std::string name = args.empty() || args[0] == "--help" || args[0] == "-h" ? "help" : args[0];
  if (name == "--version") {
    std::printf("pal %s\n", PAL_VERSION);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (name == command.name)
      return command.run(args.empty() ? args : std::vector<std::string>(args.begin() + 1, args.end()), context);
    names.push_back(command.name);
  }
  throw Error(Exit::usage, "unknown command: " + name + "; the nearest is " + config::suggest(name, names) +
                               " (all of them: pal help)");
}

}  // namespace
}  // namespace pal::launch

int main(int argc, char** argv) { return pal::launch::run_program(argc, argv, pal::launch::dispatch); }
