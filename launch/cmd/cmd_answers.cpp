// cmd_answers: `pal answers show|export|import|undo RUN`: shows, exports, imports and withdraws the answers of a run.
//
// Writes the ledger itself unless a run does; then answers and undos are submitted through the inbox.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "core/io/files.h"
#include "core/oracle/ledger/annotators.h"
#include "core/oracle/ledger/answer_lines.h"
#include "core/oracle/ledger/answers_io.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/writer_lease.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/label/task_content.h"
#include "launch/run/trained_run.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct AnswersArguments {
  std::string run, file, out, format, thumbnails, annotator = "anonymous", uuid;
  int64_t last = 0;
};

std::string ledger_path(const AnswersArguments& args) {
  run_config(args.run);  // throws with a sentence when this is no run folder
  const std::string path = args.run + "/ledger.sqlite";
  PAL_DATA_CHECK(std::filesystem::exists(path), "the run has no ledger", path,
                 "no question was asked in this run: set oracle.sampler, or see pal ask --help");
  return path;
}

// The process that writes the ledger now; "": none, and this process may.
std::string writer(const AnswersArguments& args) { return oracle::WriterLease::holder(ledger_path(args)); }

void drain_inbox(const AnswersArguments& args, oracle::Ledger& ledger) {
  std::vector<std::string> warnings;
  oracle::Inbox(args.run).drain(ledger, warnings);
  for (const std::string& w : warnings) fmt::print(stderr, "warning: {}\n", printable(w));
}

std::string inbox_name() {
  return fmt::format("{}-{}", std::chrono::system_clock::now().time_since_epoch().count(), getpid());
}

int run_show(const AnswersArguments& args) {
  oracle::Ledger ledger(ledger_path(args), oracle::kAnyRun);
  drain_inbox(args, ledger);
  const std::vector<oracle::RecordedAnswer> answers = ledger.all_answers();
  const oracle::AgreementReport report = oracle::annotator_report(answers);
  fmt::print(
      "{}",
      format_table({{"answers", ""},
                    {"questions", fmt::format("{} in {} round{}, {} open", ledger.questions(), ledger.rounds_asked(),
                                              ledger.rounds_asked() == 1 ? "" : "s", ledger.open_questions())},
                    {"cost", fmt::format("{:g}", ledger.cost())},
                    {"run", ledger.run_id()}}));
  std::vector<std::vector<std::string>> people = {{"annotator", "answers", "withdrawn", "median s", "cost"}};
  for (const oracle::AnnotatorPace& p : report.annotators) {
    people.push_back({p.annotator, std::to_string(p.answers), std::to_string(p.withdrawn),
                      fmt::format("{:.1f}", p.seconds), fmt::format("{:g}", p.cost)});
  }
  fmt::print("{}", format_table(people));
  if (report.questions > 0) {
    std::vector<std::vector<std::string>> rows = {{"agreement", "questions", "raw", "kappa"}};
    rows.push_back({"all (Fleiss)", std::to_string(report.questions), fmt::format("{:.3f}", report.raw),
                    fmt::format("{:.3f}", report.fleiss)});
    for (const oracle::PairAgreement& p : report.pairs) {
      rows.push_back({p.a + ", " + p.b + " (Cohen)", std::to_string(p.questions), fmt::format("{:.3f}", p.raw),
                      fmt::format("{:.3f}", p.cohen)});
    }
    fmt::print("{}", format_table(rows));
  }
  std::vector<std::vector<std::string>> rows = {{"uuid", "query", "template", "member", "answer", "annotator"}};
  const int64_t count = static_cast<int64_t>(answers.size()),
                first = std::max<int64_t>(0, count - (args.last > 0 ? args.last : 10));
  for (int64_t k = first; k < count; ++k) {
    const oracle::RecordedAnswer& r = answers[k];
    rows.push_back({r.answer.uuid, std::to_string(r.answer.query), std::to_string(r.answer.i),
                    std::to_string(r.answer.j), r.said + (r.superseded_by != 0 ? " (withdrawn)" : ""),
                    r.answer.annotator});
  }
  fmt::print("{}", format_table(rows));
  return static_cast<int>(Exit::ok);
}

int run_export(const AnswersArguments& args) {
  const oracle::AnswerFormat format = oracle::answer_format(args.format, args.out);
  oracle::Ledger ledger(ledger_path(args), oracle::kAnyRun);
  drain_inbox(args, ledger);
  const setup::RunSpec spec = run_spec(args.run);
  int64_t count = 0;
  if (format == oracle::AnswerFormat::h5 || format == oracle::AnswerFormat::label_studio) {
    const std::shared_ptr<data::Dataset> data = data::Dataset::open(spec.data.train);
    const Pictures pictures(data, args.thumbnails);
    count = oracle::export_answers(ledger, args.out, format, spec.oracle.consensus, data->size(),
                                   task_content(setup::label_spec(spec.config), *data, pictures));
  } else {
    count = oracle::export_answers(ledger, args.out, format, spec.oracle.consensus, 0);
  }
  const bool edges = format == oracle::AnswerFormat::edges || format == oracle::AnswerFormat::h5;
  fmt::print("{} {} in {}\n", count, edges ? "edges" : "answers", args.out);
  return static_cast<int>(Exit::ok);
}

int run_import(const AnswersArguments& args) {
  const std::string path = ledger_path(args), holder = writer(args);
  oracle::ReadEntries read =
      oracle::import_answers(args.file, oracle::answer_format(args.format, args.file), args.annotator);
  if (!holder.empty()) {
    std::string lines;
    for (const oracle::Entry& e : read.entries)
      lines += e.undo.empty() ? oracle::answer_line(e.answer) : oracle::undo_line(e);
    if (!lines.empty()) oracle::Inbox(args.run).submit(inbox_name(), lines);
    fmt::print("{} answers submitted; {} reads them at its next round\n", read.entries.size(), printable(holder));
  } else {
    oracle::Ledger ledger(path, oracle::kAnyRun);
    drain_inbox(args, ledger);
    const oracle::LedgerIntake intake = oracle::take_entries(ledger, read);
    fmt::print("{} answers recorded, {} withdrawn, {} known before; {} questions are unanswered\n", intake.recorded,
               intake.withdrawn, intake.known, ledger.open_questions());
  }
  if (read.bad_lines.empty()) return static_cast<int>(Exit::ok);
  for (size_t k = 0; k < read.reasons.size() && k < 20; ++k)
    fmt::print(stderr, "refused: {}\n", printable(read.reasons[k]));
  const std::string kept = args.file + ".refused";
  std::string lines;
  for (const std::string& line : read.bad_lines) lines += line + "\n";
  io::write_file_atomically(kept, lines);
  PAL_DATA_CHECK(false, "refused answers", read.bad_lines.size(), "the others are recorded; fix and re-import " + kept);
  return static_cast<int>(Exit::data);
}

int run_undo(const AnswersArguments& args) {
  PAL_CHECK(!args.uuid.empty() || args.last > 0, "nothing selected to undo in", args.run,
            "give --uuid U, or --last N --annotator A");
  const std::string path = ledger_path(args), holder = writer(args);
  if (!holder.empty()) {
    PAL_CHECK(!args.uuid.empty(), "the ledger is being written by", holder,
              "give --uuid U, which goes through the inbox");
    oracle::Inbox(args.run).submit(inbox_name(), oracle::undo_line({{}, args.uuid, args.annotator}));
    fmt::print("submitted; {} withdraws it at its next round\n", printable(holder));
    return static_cast<int>(Exit::ok);
  }
  oracle::Ledger ledger(path, oracle::kAnyRun);
  drain_inbox(args, ledger);
  std::vector<oracle::Entry> entries;
  if (!args.uuid.empty()) {
    entries.push_back({{}, args.uuid, args.annotator});
  } else {
    for (const oracle::RecordedAnswer& r : ledger.last_answers(args.annotator, args.last)) {
      if (r.superseded_by == 0) entries.push_back({{}, r.answer.uuid});
    }
  }
  for (oracle::Entry& e : entries) e.answer.annotator = args.annotator;
  const oracle::LedgerIntake intake = ledger.take(entries);
  for (const std::string& reason : intake.refused) {
    if (!reason.empty()) throw Error(Exit::data, reason);
  }
  fmt::print("{} answers withdrawn, {} withdrawn before; {} questions are unanswered\n", intake.withdrawn, intake.known,
             ledger.open_questions());
  return static_cast<int>(Exit::ok);
}

}  // namespace

int cmd_answers(const std::vector<std::string>& arguments, Context&) {
  CLI::App app("Shows, exports, imports and withdraws the answers of a run (pal help oracles).", "pal answers");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  pal answers show runs/mine\n  pal answers import runs/mine answers.jsonl --annotator ann\n"
      "  pal answers export runs/mine --out answers.csv\n  pal answers undo runs/mine --last 1 --annotator ann");
  AnswersArguments args;
  CLI::App& show = *app.add_subcommand("show", "Lists the answers, the pace of each person and their agreement.");
  CLI::App& out = *app.add_subcommand("export", "Writes all answers, or the edges that follow from them.");
  CLI::App& in = *app.add_subcommand("import", "Records answers; while a job runs, it reads them from its inbox.");
  CLI::App& undo = *app.add_subcommand("undo", "Withdraws answers: they are superseded, not deleted.");
  for (CLI::App* command : {&show, &out, &in, &undo}) command->add_option("RUN", args.run, "run folder")->required();
  show.add_option("--last", args.last, "answers to list (default 10)")->check(CLI::PositiveNumber);
  out.add_option("--out", args.out, "file to write")->required();
  out.add_option("--thumbnails", args.thumbnails, "label-studio, for features: folder of pictures N.png or N.jpg");
  in.add_option("FILE", args.file, "answers")->required()->check(CLI::ExistingFile);
  for (CLI::App* command : {&out, &in}) {
    command
        ->add_option("--format", args.format, "jsonl, csv, edges, h5 or label-studio (default: by the file's ending)")
        ->check(CLI::IsMember({"jsonl", "csv", "edges", "h5", "label-studio"}));
  }
  undo.add_option("--uuid", args.uuid, "the answer with this uuid (pal answers show)");
  undo.add_option("--last", args.last, "the last N answers of --annotator")->check(CLI::PositiveNumber);
  for (CLI::App* command : {&in, &undo})
    command
        ->add_option("--annotator", args.annotator,
                     "person: of lines without an annotator, or whose answers are withdrawn")
        ->capture_default_str();
  show.footer("Example:\n  pal answers show runs/mine --last 20");
  out.footer(
      "Examples:\n  pal answers export runs/mine --out answers.jsonl\n  pal answers export runs/mine --out edges.csv "
      "--format edges");
  in.footer("Example:\n  pal answers import runs/mine answers.csv");
  undo.footer("Example:\n  pal answers undo runs/mine --uuid q1-m5-yes-ann");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (show.parsed()) return run_show(args);
  if (out.parsed()) return run_export(args);
  return in.parsed() ? run_import(args) : run_undo(args);
}

}  // namespace pal::launch
