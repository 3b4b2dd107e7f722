// cmd_ask: `pal ask RUN --n k --out Q.jsonl`: a round of questions by the newest checkpoint, on any machine, without a
// job.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "core/io/files.h"
#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/oracle.h"
#include "core/oracle/round/round.h"
#include "core/oracle/samplers/samplers.h"
#include "core/setup/setup.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/label/task_content.h"
#include "launch/process/machine.h"
#include "launch/run/ask_round.h"
#include "launch/run/device_option.h"
#include "launch/run/run_graph.h"
#include "launch/run/trained_run.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct AskArguments {
  std::string run, out, format, label_config, thumbnails, device;
  std::vector<std::string> overrides;
  int64_t questions = 100;
};

}  // namespace

int cmd_ask(const std::vector<std::string>& arguments, Context& context) {
  AskArguments args;
  CLI::App app(
      "Chooses a round of questions by the newest checkpoint of a run, and writes them to its ledger and to a file.",
      "pal ask");
  app.add_option("RUN", args.run, "run folder")->required();
  app.add_option("KEY=VALUE", args.overrides, "settings of the section oracle instead of the run's own");
  app.add_option("--n", args.questions, "questions, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--out", args.out, "file to write")->required();
  app.add_option("--format", args.format, "jsonl: one JSON object per line; label-studio: tasks with their pictures")
      ->check(CLI::IsMember({"jsonl", "label-studio"}))
      ->default_val("jsonl");
  app.add_option("--label-config", args.label_config,
                 "label-studio: file for the labeling interface; default: --out with the ending .xml");
  add_device_option(app, args.device);
  app.add_option("--thumbnails", args.thumbnails, "label-studio, for features: folder of pictures N.png or N.jpg");
  app.footer(
      "Examples:\n"
      "  pal ask runs/mine --n 500 --out questions.jsonl\n"
      "  pal ask runs/mine oracle.sampler=uncertainty --n 50 --out questions.jsonl\n"
      "  pal ask runs/mine --n 200 --out tasks.json --format label-studio\n"
      "then: pal answers import runs/mine answers.jsonl; the next pal train uses them.\n"
      "Without a question the reason is printed: exit code 0, or 75 when every remaining question is unanswered.");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  keep_freed_memory();
  RunGraph graph = open_run_graph(args.run, args.overrides);
  const setup::RunSpec& spec = graph.spec;
  const auto sampler = oracle::make_query_sampler(spec.oracle, graph.data->parents());
  PAL_CHECK(sampler != nullptr, "the run has no sampler", "oracle.sampler=none",
            "name a sampler: pal ask RUN oracle.sampler=captcha");
  const bool tasks = args.format == "label-studio";
  const Pictures pictures(graph.data, args.thumbnails);
  PAL_CHECK(!tasks || pictures.any(), "Label Studio shows pictures, but the data set holds features", spec.data.train,
            "give a folder of pictures with --thumbnails");
  if (args.label_config.empty()) args.label_config = std::filesystem::path(args.out).replace_extension(".xml").string();
  dist::World& world = context.start_world();
  PAL_CHECK(world.size() == 1, "pal ask runs on one rank, but was started on", world.size(), "start it without mpirun");
  at::set_num_threads(setup::compute_threads(spec.train, world.cores()));
  // A run that was trained without an oracle gets its ledger here.
  oracle::Ledger ledger(args.run + "/ledger.sqlite",
                        oracle::ledger_run(run_spec(args.run).oracle, graph.data->fingerprint()));
  std::vector<std::string> warnings;
  oracle::Inbox(args.run).drain(ledger, warnings);
  insert_ledger(graph, ledger);

  AskOptions options;
  options.questions = args.questions;
  options.threads = setup::compute_threads(spec.train, world.cores());
  options.device = encoder_device(args.device, spec.train, world);
  std::unique_ptr<Progress> bar;
  options.progress = [&](int64_t done, int64_t total) {
    if (!bar) bar = std::make_unique<Progress>("embed", total);
    bar->update(done, "");
  };
  const auto [queries, step, why, waits] = ask_round(args.run, graph, *sampler, ledger, options, world.compute());
  bar.reset();
  if (tasks) {
    const oracle::TaskContent content = task_content(setup::label_spec(spec.config), *graph.data, pictures);
    io::write_file_atomically(args.out, oracle::label_studio_tasks(queries, content));
    io::write_file_atomically(args.label_config, oracle::label_studio_config(content));
  } else {
    std::string lines;
    for (const oracle::Query& q : queries)
      lines += oracle::question_line(q, [&](int64_t sample) { return graph.data->id(sample); });
    io::write_file_atomically(args.out, lines);
  }
  for (const std::string& w : warnings) fmt::print(stderr, "warning: {}\n", printable(w));
  if (queries.empty()) {
    fmt::print("0 questions: {}\n", why);
    return static_cast<int>(waits ? Exit::again : Exit::ok);
  }
  fmt::print("{} questions in {} queries: {}, by {} at step {}\n", oracle::question_count(queries), queries.size(),
             args.out, sampler->name(), step);
  if (tasks) {
    fmt::print("Label Studio: paste {} under Settings, Labeling Interface, Code; import {}; later export as JSON\n",
               args.label_config, args.out);
  }
  fmt::print("next: pal label {0}, or pal answers import {0} ANSWERS\n", printable(args.run));
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
