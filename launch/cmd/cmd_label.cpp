// cmd_label: `pal label RUN|CONFIG`: the labeling page, alone with the run's ledger or beside a job that writes it.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "core/graph/settings.h"
#include "core/io/cores.h"
#include "core/label/answer_service.h"
#include "core/label/users.h"
#include "core/oracle/ledger/ledger.h"
#include "core/oracle/ledger/writer_lease.h"
#include "core/oracle/round/round.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/label/label_run.h"
#include "launch/label/pictures.h"
#include "launch/label/server.h"
#include "launch/process/machine.h"
#include "launch/process/signals.h"
#include "launch/run/ask_round.h"
#include "launch/run/device_option.h"
#include "launch/run/run_graph.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

struct LabelArguments {
  LabelTarget target;
  std::string users, thumbnails, device;
  std::vector<std::string> hosts;
  ServerOptions server;
  int64_t gold = 0, gold_every = 20;
  bool beside = false;
};

// The host in the links: of all addresses, a name under which other machines may know this one.
std::string shown_host(const LabelArguments& args) {
  const std::string& bind = args.server.bind;
  if (bind != "0.0.0.0" && bind != "::") return bind.find(':') == std::string::npos ? bind : "[" + bind + "]";
  if (!args.hosts.empty()) return args.hosts.front();
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "127.0.0.1";
}

PageHosts hosts_of(const LabelArguments& args, int port) {
  PageHosts hosts{{"localhost", "127.0.0.1", "[::1]", shown_host(args)},
                  port,
                  args.server.bind == "0.0.0.0" || args.server.bind == "::"};
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) == 0) hosts.names.insert(name);
  hosts.names.insert(args.hosts.begin(), args.hosts.end());
  return hosts;
}

// Stops the server when a signal arrives.
class StopOnSignal {
 public:
  StopOnSignal(const BlockedSignals& signals, LabelServer& server)
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

int cmd_label(const std::vector<std::string>& arguments, Context& context) {
  LabelArguments args;
  CLI::App app("Serves the labeling page: people answer the questions of a run in their browsers (pal help label).",
               "pal label");
  app.add_option("RUN|CONFIG", args.target.target, "run folder, or a config whose run folder is made")->required();
  app.add_option("KEY=VALUE", args.target.overrides, "settings of the section oracle instead of the run's own");
  app.add_option("--run-dir", args.target.run_dir, "with a config: run folder; default runs/<config stem>");
  app.add_option("--port", args.server.port, "port; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--bind", args.server.bind, "address to listen at; 0.0.0.0: all of this machine")
      ->capture_default_str();
  app.add_option("--host", args.hosts, "further names under which browsers know this machine");
  app.add_option("--users", args.users,
                 "file with a name a line (\"NAME owner\" may review and export); default: one person")
      ->check(CLI::ExistingFile);
  app.add_option("--thumbnails", args.thumbnails, "for features: folder of pictures N.png or N.jpg of the samples");
  app.add_option("--gold", args.gold, "grids with known answers, mixed with the others to check how well people do")
      ->check(CLI::Range(int64_t{0}, int64_t{10000}))
      ->capture_default_str();
  app.add_option("--gold-every", args.gold_every, "cards of a person from one gold grid to the next")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}))
      ->capture_default_str();
  add_device_option(app, args.device);
  app.add_flag("--beside", args.beside, "a job writes the ledger, even if none runs now: answers go through the inbox");
  app.footer(
      "Examples:\n"
      "  pal label runs/mine\n"
      "  pal label configs/quickstart.yaml oracle.sampler=captcha\n"
      "  pal label runs/mine --bind 0.0.0.0 --users people.txt --gold 20");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  keep_freed_memory();
  const BlockedSignals signals{SIGINT, SIGTERM};
  LabelServer server(args.server);
  const std::string run = label_run_folder(args.target), folder = run + "/label";
  const RunGraph graph = open_label_graph(args.target, run);
  at::set_num_threads(io::usable_cores());
  std::error_code error;
  fs::create_directories(folder, error);
  PAL_CHECK(!error, "cannot create the folder " + folder, error.message(),
            "check that you may write in the run folder");
  const oracle::WriterLease lease(folder + "/server");  // one page for each run
  const std::string job = oracle::WriterLease::holder(run + "/ledger.sqlite");
  const label::Writer writer = args.beside || !job.empty() ? label::Writer::job : label::Writer::page;
  oracle::Ledger ledger(writer == label::Writer::page ? run + "/ledger.sqlite" : folder + "/ledger.sqlite",
                        oracle::ledger_run(run_spec(run).oracle, graph.data->fingerprint()));

  const label::Tokens tokens(folder + "/secret");
  label::Users people(
      args.users.empty() ? std::vector<label::User>{{"me", label::Role::owner}} : label::read_users(args.users), tokens,
      folder + "/links");
  const Pictures pictures(graph.data, args.thumbnails);
  if (args.gold > 0)
    label::add_gold_questions(ledger, writer, args.gold, kGridMembers,
                              setup::known_labels(graph.spec, *graph.data, graph.subset), graph.spec.train.seed);
  label::AnswerService service(
      ledger, run,
      {writer,
       graph.spec.oracle.votes,
       {graph.spec.oracle.cost_pair, graph.spec.oracle.cost_grid, graph.spec.oracle.cost_coarse},
       args.gold_every});
  const at::Device device = writer == label::Writer::job
                                ? at::Device(at::kCPU)  // the job asks
                                : encoder_device(args.device, graph.spec.train, context.start_world());
  const LabelRun label_run(run, graph, ledger, service, people, pictures, label_words(args.target, graph), device);
  LabelPage page(service, people, tokens, label_run, hosts_of(args, server.port()));

  fmt::print("{}\n", writer == label::Writer::page
                         ? "answers go to " + run + "/ledger.sqlite"
                         : fmt::format("answers go to {} through {}/inbox", job.empty() ? "the next job" : job, run));
  if (const std::string unused = graph::answers_without_weight(graph.spec.graph.kind); !unused.empty())
    fmt::print("note: {}\n", unused);
  const std::string shown = shown_host(args);
  const std::string address = fmt::format("http://{}:{}", shown, server.port()), links = folder + "/links.txt";
  people.publish(links, address);
  // A link is a password: a log, which others may read, holds none.
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  for (const label::User& p : people.all()) {
    if (terminal && p.role == label::Role::owner)
      fmt::print("{}: {}/?token={}\n", p.name, address, people.link(p.name));
  }
  fmt::print("the page is at {}; the link of each person is in {}\n", address, links);
  fmt::print("each link opens the page once, in one browser; then the file has the next; stop with Ctrl-C\n");
  std::fflush(stdout);
  {
    const StopOnSignal stop(signals, server);
    server.run(page);
  }
  fmt::print("{} questions are unanswered\n", ledger.open_questions());
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
