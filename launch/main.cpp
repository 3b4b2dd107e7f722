// main: the table of commands, and the one place where errors end.
#include <c10/util/Exception.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <thread>

#include "core/config/suggest.h"
#include "kernels/base/error.h"
#include "launch/commands.h"

namespace pal {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"train", "train an encoder on a similarity graph", cmd_train},
      {"submit", "train on a cluster: write and submit a SLURM job", cmd_submit},
      {"plan", "predict how a run scales to thousands of GPUs (a model)", cmd_plan},
      {"data", "make, show and check data sets", cmd_data},
      {"graph", "show and convert weighted pairs", cmd_graph},
      {"eval", "measure a trained encoder: probes, nearest neighbours, fine-tuning", cmd_eval},
      {"export", "write a trained encoder for Python, with torchvision's names", cmd_export},
      {"embed", "write the features of a data set", cmd_embed},
      {"watch", "show how a run stands", cmd_watch},
      {"runs", "list runs, their state and in what they differ", cmd_runs},
      {"report", "write an HTML page about runs", cmd_report},
      {"reproduce", "make a published table by real runs, ours beside it", cmd_reproduce},
      {"label", "serve the labelling page: people answer in their browsers", cmd_label},
      {"ask", "choose a round of questions by the newest checkpoint", cmd_ask},
      {"answers", "show, write out, hand in and take back answers", cmd_answers},
      {"labels", "write the class of every sample and how it is known", cmd_labels},
      {"checkpoint", "list and check the checkpoints of a run", cmd_checkpoint},
      {"oracle", "compare oracles: error against questions and cost", cmd_oracle},
      {"experiment", "the controlled experiments of the paper, as CSV and SVG", cmd_experiment},
      {"theory", "check every statement of the paper", cmd_theory},
      {"config", "show every setting of a config and where it came from", cmd_config},
      {"bench", "measure speed against a named peer", cmd_bench},
      {"doctor", "check this machine", cmd_doctor},
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
    if (name == command.name) return command.run(args.empty() ? args : std::vector<std::string>(args.begin() + 1, args.end()), context);
    names.push_back(command.name);
  }
  throw Error(Exit::usage, "unknown command: " + name + "; the nearest is " + nearest_name(name, names) + " (all of them: pal help)");
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Says the sentence; with other ranks around it brings them all down and does not return.
int end_with(Exit code, const std::string& sentence, Context& context) {
  const bool many = context.world && context.world->size() > 1;
  std::fflush(stdout);
  // An error that every rank meets is said once: rank 0 speaks at once and its abort silences the others.
  if (many && context.world->rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::fprintf(stderr, "%serror: %s\n", many ? (context.world->prefix() + " ").c_str() : "", sentence.c_str());
  if (many) context.world->abort(static_cast<int>(code));
  return static_cast<int>(code);
}

int run(const std::vector<std::string>& args, Context& context) {
  try {
    return dispatch(args, context);
  } catch (const Error& e) {
    return end_with(e.code(), e.what(), context);
  } catch (const std::bad_alloc&) {
    return end_with(Exit::bug, "this process is out of memory; use a smaller train.global_batch or model, or more memory", context);
  } catch (const c10::Error& e) {
    return end_with(Exit::bug, "internal error in LibTorch: " + first_line(e.what_without_backtrace()) + "; please report it", context);
  } catch (const std::exception& e) {
    return end_with(Exit::bug, "internal error: " + first_line(e.what()) + "; please report it", context);
  }
}

}  // namespace
}  // namespace pal

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);   // a file above the size limit is an error with a sentence, not a death
  pal::Context context;
  std::error_code error;
  context.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) context.program = argv[0];
  return pal::run(std::vector<std::string>(argv + 1, argv + argc), context);
}
