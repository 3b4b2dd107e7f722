// cmd_checkpoint: pal checkpoint list|verify RUN: lists the checkpoints of a run and checks them.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/record/checkpoint_folder.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

double megabytes(const std::string& folder) {
  double bytes = 0;
  for (const auto& file : fs::directory_iterator(folder)) bytes += static_cast<double>(file.file_size());
  return bytes / 1e6;
}

// Whether every SHA-256 agrees; otherwise the reason.
std::string damage(const std::string& path) {
  try {
    record::verify_checkpoint(path);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

int cmd_checkpoint(const std::vector<std::string>& arguments, Context&) {
  std::string run;
  CLI::App app("Lists and checks the checkpoints of a run.", "pal checkpoint");
  app.require_subcommand(1);
  app.footer("Examples:\n  pal checkpoint list runs/quickstart\n  pal checkpoint verify runs/quickstart");
  CLI::App& list = *app.add_subcommand("list", "Lists each checkpoint, newest first: step, files, size.");
  CLI::App& verify = *app.add_subcommand(
      "verify", "Reads every file and compares its SHA-256 with the manifest; exit code 3 when one is damaged.");
  for (CLI::App* sub : {&list, &verify}) sub->add_option("RUN", run, "run folder")->required();
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  PAL_CHECK(fs::is_directory(run), "this run folder does not exist", run, "give the run folder that pal train printed");
  const std::vector<int64_t> steps = record::checkpoint_steps(run);
  PAL_DATA_CHECK(!steps.empty(), "the run has no checkpoint", run, "train it first: pal train");
  std::vector<std::vector<std::string>> rows = {
      {"checkpoint", "files", "MB", verify.parsed() ? "SHA-256" : "complete"}};
  int damaged = 0;
  std::optional<Progress> bar;
  if (verify.parsed()) bar.emplace("verify", std::ssize(steps));
  for (const int64_t step : steps) {
    if (bar) bar->update(std::ssize(rows) - 1, fmt::format("step-{}", step));
    const std::string path = record::checkpoint_path(run, step);
    std::string state = fs::exists(path + "/manifest.json") ? "yes" : "no manifest";
    if (verify.parsed()) {
      const std::string reason = damage(path);
      damaged += reason.empty() ? 0 : 1;
      state = reason.empty() ? "right" : reason;
    }
    const auto files = std::distance(fs::directory_iterator(path), fs::directory_iterator());
    rows.push_back(
        {fmt::format("step-{}", step), std::to_string(files), fmt::format("{:.1f}", megabytes(path)), state});
  }
  if (bar) bar->update(std::ssize(steps), "");
  bar.reset();
  fmt::print("{}", format_table(rows));
  PAL_DATA_CHECK(damaged == 0, "damaged checkpoints: {}", damaged,
                 "a run skips them; remove them if the others are complete");
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
