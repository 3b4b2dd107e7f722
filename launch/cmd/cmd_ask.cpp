// cmd_ask: `pal ask RUN --n k --out Q.jsonl`: a round of questions by the newest checkpoint, on any machine, without a
// job.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "core/io/files.h"
#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/oracle.h"
#include "core/oracle/round/round.h"
#include "core/oracle/samplers/samplers.h"
#include "core/setup/setup.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/process/machine.h"
#include "launch/run/ask_round.h"
#include "launch/run/run_graph.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace {

struct Arguments {
  std::string run, out;
  std::vector<std::string> overrides;
  int64_t questions = 100;
};

}  // namespace

int cmd_ask(const std::vector<std::string>& arguments, Context& context) {
  Arguments args;
  CLI::App app(
      "Chooses a round of questions by the newest checkpoint of a run, and writes them to its ledger and to a file.",
      "pal ask");
  app.add_option("RUN", args.run, "run folder")->required();
  app.add_option("KEY=VALUE", args.overrides, "settings of the section oracle instead of the run's own");
  app.add_option("--n", args.questions, "questions, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--out", args.out, "file to write, one JSON object per line")->required();
  app.footer(
      "Examples:\n"
      "  pal ask runs/mine --n 500 --out questions.jsonl\n"
      "  pal ask runs/mine oracle.sampler=uncertainty --n 50 --out questions.jsonl\n"
      "then: pal answers import runs/mine answers.jsonl; the next pal train uses them.\n"
      "Without a question the reason is printed: exit code 0, or 75 when every remaining question is unanswered.");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  keep_freed_memory();
  RunGraph graph = open_run_graph(args.run, args.overrides);
  const setup::RunSpec& spec = graph.spec;
  const auto sampler = oracle::make_query_sampler(spec.oracle, graph.data->parents());
  PAL_CHECK(sampler != nullptr, "the run has no sampler", "oracle.sampler=none",
            "name a sampler: pal ask RUN oracle.sampler=captcha");
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
  const auto [queries, step, why, waits] = ask_round(args.run, graph, *sampler, ledger, options, world.compute());
  std::string lines;
  for (const oracle::Query& q : queries)
    lines += oracle::question_line(q, [&](int64_t sample) { return graph.data->id(sample); });
  io::write_file_atomically(args.out, lines);
  for (const std::string& w : warnings) fmt::print(stderr, "warning: {}\n", w);
  if (queries.empty()) {
    fmt::print("0 questions: {}\n", why);
    return static_cast<int>(waits ? Exit::again : Exit::ok);
  }
  fmt::print("{} questions in {} queries: {}, by {} at step {}\n", oracle::question_count(queries), queries.size(),
             args.out, sampler->name(), step);
  fmt::print("next: pal label {0}, or pal answers import {0} ANSWERS\n", args.run);
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
