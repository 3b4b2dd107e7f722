// cmd_label: `pal label RUN|CONFIG`: the labeling page, alone with the run's ledger or beside a job that writes it.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/comm/comm.h"
#include "core/io/cores.h"
#include "core/io/files.h"
#include "core/label/answer_service.h"
#include "core/oracle/ledger/answers_io.h"
#include "core/oracle/ledger/writer_lease.h"
#include "core/oracle/oracle.h"
#include "core/oracle/samplers/samplers.h"
#include "core/record/metrics_reader.h"
#include "core/setup/setup.h"
#include "dist/train/query_round.h"
#include "dist/train/resume.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/label/background.h"
#include "launch/label/gold.h"
#include "launch/label/pictures.h"
#include "launch/label/server.h"
#include "launch/process/machine.h"
#include "launch/run/ask_round.h"
#include "launch/run/run_graph.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGridMembers = 15;  // 3 rows of 5

struct Arguments {
  std::string target, run, users, thumbnails;
  std::vector<std::string> overrides, hosts;
  ServerOptions server;
  int64_t gold = 0, gold_every = 20;
  bool beside = false;
};

// A line on standard error, as whole lines of several threads.
void say_line(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  fmt::print(stderr, "{}\n", line);
}

// The run folder of what was named; that of a config is made when it is not there.
std::string run_folder_of(const Arguments& args) {
  if (fs::is_directory(args.target)) {
    PAL_CHECK(args.run.empty(), "--run-dir is for a config; a run folder was given", args.target,
              "leave --run-dir out");
    return args.target;
  }
  PAL_CHECK(fs::exists(args.target), "no such run folder or config", args.target,
            "give what pal train printed as the run folder, or a YAML config");
  const config::Config config = config::Config::load(args.target, args.overrides);
  PAL_CHECK(config.has("data.train"), "no training set is given", "data.train is empty",
            "set data.train to a .h5 file, or a file of features");
  const std::string run = args.run.empty() ? "runs/" + fs::path(args.target).stem().string() : args.run;
  if (!fs::exists(run + "/config.yaml")) {
    const dist::RunFolder made(run, config, dist::Resume::automatic);
    return run;
  }
  std::string keys;
  for (const std::string& key : run_config(run).differing_keys(config)) {
    if (key.rfind("oracle.", 0) != 0) keys += (keys.empty() ? "" : ", ") + key;
  }
  PAL_CHECK(keys.empty(), "the run folder " + run + " holds a run of another config; different keys", keys,
            "choose another with --run-dir");
  return run;
}

// A page shows 15 at a time unless somebody wants another number.
std::vector<std::string> page_overrides(const Arguments& args, const config::Config& config) {
  std::vector<std::string> overrides;
  for (const std::string& o : args.overrides) {
    if (o.rfind("oracle.", 0) == 0) overrides.push_back(o);
  }
  const bool said = std::any_of(overrides.begin(), overrides.end(),
                                [](const std::string& o) { return o.rfind("oracle.members=", 0) == 0; });
  const bool usual = config.formatted("oracle.members") == config::find_key("oracle.members")->default_value;
  if (!said && usual) overrides.push_back("oracle.members=" + std::to_string(kGridMembers));
  return overrides;
}

// Where no label is known, people find the classes on the way.
RunGraph open_page_graph(const Arguments& args, const std::string& run) {
  std::vector<std::string> overrides = page_overrides(args, run_config(run));
  RunGraph graph = open_run_graph(run, overrides);
  const std::vector<int64_t> labels = setup::known_labels(graph.config, *graph.data, graph.subset);
  const bool known = std::any_of(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
  const bool said = std::any_of(overrides.begin(), overrides.end(),
                                [](const std::string& o) { return o.rfind("oracle.templates=", 0) == 0; });
  if (known || said || graph.config.text("oracle.templates") != "given") return graph;
  overrides.push_back("oracle.templates=discover");
  return open_run_graph(run, overrides);
}

// A node of the taxonomy by the classes under it.
std::string classes_under(const data::Dataset& data, int64_t node) {
  const std::vector<int64_t> parents = data.parents();
  std::string names;
  int64_t count = 0;
  for (size_t c = 0; c < data.classes().size(); ++c) {
    auto at = static_cast<int64_t>(c);
    while (at >= 0 && at != node && at < static_cast<int64_t>(parents.size())) at = parents[at];
    if (at == node && ++count <= 6) names += (names.empty() ? "" : ", ") + data.classes()[c];
  }
  return count > 6 ? names + " …" : names;
}

RunFacts look_at_run(const std::string& run, const RunGraph& graph, const Pictures& pictures) {
  RunFacts facts;
  facts.name = fs::path(run).lexically_normal().filename().string();
  if (facts.name.empty()) facts.name = fs::path(run).lexically_normal().parent_path().filename().string();
  facts.samples = graph.data->size();
  facts.classes = static_cast<int64_t>(graph.data->classes().size());
  facts.budget = graph.config.integer("oracle.budget");
  facts.images = pictures.any();
  if (!fs::exists(run + "/metrics.jsonl")) return facts;
  const record::RunMetrics metrics = record::read_metrics(run + "/metrics.jsonl");
  facts.trained_on = static_cast<int64_t>(record::last_value(metrics, "queries", -1));
  for (const char* name : {"eval_linear_top1", "eval_knn_top1"}) {
    const record::MetricCurve curve = record::metric_curve(metrics, name);
    if (curve.x.empty()) continue;
    facts.measure = std::string(name) == "eval_linear_top1" ? "linear probe" : "nearest neighbors";
    const size_t every = curve.x.size() / 200 + 1;
    for (size_t k = 0; k < curve.x.size(); ++k) {
      if (k % every == 0 || k + 1 == curve.x.size())
        facts.accuracy.emplace_back(static_cast<int64_t>(curve.x[k]), curve.y[k]);
    }
    break;
  }
  return facts;
}

// The next round, by the newest checkpoint or what the samples themselves are.
AskResult ask_next(const std::string& run, const RunGraph& before, oracle::Ledger& ledger,
                   const oracle::QuerySampler& sampler) {
  RunGraph graph = before;
  AskOptions options;
  options.questions = graph.config.integer("oracle.questions_per_round");
  options.untrained = Untrained::by_inputs;
  options.threads = io::usable_cores();
  insert_ledger(graph, ledger);
  const auto alone = comm::make_local_comm();
  const AskedRound asked = ask_round(run, graph, sampler, ledger, options, *alone);
  return {static_cast<int64_t>(asked.queries.size()), asked.why};
}

std::string exported_file(const std::string& run, const std::string& name, const oracle::Ledger& ledger,
                          oracle::ConsensusKind consensus) {
  const std::map<std::string, oracle::AnswerFormat> formats = {
      {"answers.jsonl", oracle::AnswerFormat::jsonl},
      {"answers.csv", oracle::AnswerFormat::csv},
      {"label-studio.json", oracle::AnswerFormat::label_studio},
      {"edges.csv", oracle::AnswerFormat::edges}};
  const std::string path = run + "/label/" + name;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  oracle::export_answers(ledger, path, formats.at(name), consensus, 0);
  return io::read_whole_file(path);
}

PageHosts hosts_of(const Arguments& args, int port) {
  PageHosts hosts{{"localhost", "127.0.0.1", "[::1]", args.server.bind},
                  port,
                  args.server.bind == "0.0.0.0" || args.server.bind == "::"};
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) == 0) hosts.names.insert(name);
  hosts.names.insert(args.hosts.begin(), args.hosts.end());
  return hosts;
}

// INT and TERM, blocked in this thread and in those it starts: make it before any other thread.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int s : {SIGINT, SIGTERM}) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void wait() const {
    int got = 0;
    sigwait(&set_, &got);
  }

 private:
  sigset_t set_;
};

// Ends the server when a signal comes.
class StopOnSignal {
 public:
  StopOnSignal(const Signals& signals, LabelServer& server)
      : thread_([this, &signals, &server] {
          signals.wait();
          if (!over_) server.stop();
        }) {}
  ~StopOnSignal() {
    over_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace

int cmd_label(const std::vector<std::string>& arguments, Context&) {
  Arguments args;
  CLI::App app("Serves the labeling page: people answer the questions of a run in their browsers (pal help label).",
               "pal label");
  app.add_option("RUN|CONFIG", args.target, "run folder, or a config whose run folder is made")->required();
  app.add_option("KEY=VALUE", args.overrides, "settings of the section oracle instead of the run's own");
  app.add_option("--run-dir", args.run, "with a config: run folder; default runs/<config stem>");
  app.add_option("--port", args.server.port, "port; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--bind", args.server.bind, "address to listen at; 0.0.0.0: all of this machine")
      ->capture_default_str();
  app.add_option("--host", args.hosts, "further names under which browsers know this machine");
  app.add_option("--users", args.users,
                 "file with a name a line (\"NAME owner\" may review and export); default: one person")
      ->check(CLI::ExistingFile);
  app.add_option("--thumbnails", args.thumbnails, "features only: folder of pictures N.png or N.jpg of the samples");
  app.add_option("--gold", args.gold, "grids whose answers the labels tell, put among the others")
      ->check(CLI::Range(int64_t{0}, int64_t{10000}))
      ->capture_default_str();
  app.add_option("--gold-every", args.gold_every, "cards of a person from one gold grid to the next")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}))
      ->capture_default_str();
  app.add_flag("--beside", args.beside, "leave the ledger to jobs, also while none runs: answers go through the inbox");
  app.footer(
      "Examples:\n"
      "  pal label runs/mine\n"
      "  pal label configs/quickstart.yaml oracle.sampler=captcha\n"
      "  pal label runs/mine --bind 0.0.0.0 --users people.txt --gold 20");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  keep_freed_memory();
  const Signals signals;
  LabelServer server(args.server);
  const std::string run = run_folder_of(args), folder = run + "/label";
  const RunGraph graph = open_page_graph(args, run);
  const config::Config& config = graph.config;
  at::set_num_threads(io::usable_cores());
  std::error_code error;
  fs::create_directories(folder, error);
  PAL_CHECK(!error, "cannot make the folder " + folder, error.message(), "check that you may write in the run folder");
  const oracle::WriterLease lease(folder + "/server");  // one page a run
  const std::string job = oracle::WriterLease::holder(run + "/ledger.sqlite");
  const label::Writer writer = args.beside || !job.empty() ? label::Writer::job : label::Writer::page;
  oracle::Ledger ledger(writer == label::Writer::page ? run + "/ledger.sqlite" : folder + "/ledger.sqlite",
                        dist::ledger_run(run_config(run), graph.data->fingerprint()));

  const label::Tokens tokens(folder + "/secret");
  label::Users people(
      args.users.empty() ? std::vector<label::User>{{"me", label::Role::owner}} : label::read_users(args.users), tokens,
      folder + "/links");
  const Pictures pictures(graph.data, args.thumbnails);
  const std::vector<int64_t> labels = setup::known_labels(config, *graph.data, graph.subset);
  if (args.gold > 0)
    add_gold(ledger, writer, args.gold, kGridMembers, labels, static_cast<uint64_t>(config.integer("train.seed")));
  label::AnswerService service(
      ledger, run,
      {writer,
       config.integer("oracle.votes"),
       {config.real("oracle.cost_pair"), config.real("oracle.cost_grid"), config.real("oracle.cost_coarse")},
       args.gold_every});
  const auto sampler = oracle::make_query_sampler(config, graph.data->parents());
  PAL_CHECK(sampler != nullptr || service.queue().open() > 0 || writer == label::Writer::job,
            "the run has no sampler and no open question", "oracle.sampler=none",
            "name one: pal label RUN oracle.sampler=captcha");
  const oracle::ConsensusKind consensus = oracle::consensus_kind(config.text("oracle.consensus"));
  BackgroundParts kept{service,
                       people,
                       [&] { return label::look_at_answers(ledger, graph.store, consensus, labels); },
                       [&] { return look_at_run(run, graph, pictures); },
                       {},
                       say_line};
  if (sampler && writer == label::Writer::page) kept.ask = [&] { return ask_next(run, graph, ledger, *sampler); };
  BackgroundWorker keeper(kept);
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  LabelPage page({service, people, tokens, [&](int64_t sample, ImageSize size) { return pictures.of(sample, size); },
                  [&] { return keeper.stats(); }, [&] { return keeper.facts(); },
                  [&](int64_t node) { return classes_under(*graph.data, node); },
                  [&](const std::string& name) { return exported_file(run, name, ledger, consensus); }, say_line, now},
                 hosts_of(args, server.port()));

  fmt::print("{}\n", writer == label::Writer::page
                         ? "answers go to " + run + "/ledger.sqlite"
                         : fmt::format("answers go to {} through {}/inbox", job.empty() ? "the next job" : job, run));
  const std::string shown =
      args.server.bind == "0.0.0.0" || args.server.bind == "::" ? std::string("127.0.0.1") : args.server.bind;
  for (const label::User& p : people.all())
    fmt::print("{}: http://{}:{}/?token={}\n", p.name, shown, server.port(), people.link(p.name));
  fmt::print("each link opens the page once, in one browser; end with Ctrl-C\n");
  std::fflush(stdout);
  {
    const StopOnSignal stop(signals, server);
    server.run(page);
  }
  fmt::print("{} questions are open\n", ledger.open_questions());
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
