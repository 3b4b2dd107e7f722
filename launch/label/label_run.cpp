#include "launch/label/label_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/comm/comm.h"
#include "core/graph/settings.h"
#include "core/io/cores.h"
#include "core/io/files.h"
#include "core/oracle/ledger/answers_io.h"
#include "core/oracle/samplers/samplers.h"
#include "core/record/metrics_reader.h"
#include "core/setup/setup.h"
#include "dist/train/resume.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/entry.h"
#include "launch/label/task_content.h"
#include "launch/run/ask_round.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

bool sets_key(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& o) { return o.starts_with(key + "="); });
}

std::vector<std::string> page_overrides(const LabelTarget& target, const setup::RunSpec& spec) {
  std::vector<std::string> overrides;
  for (const std::string& o : target.overrides) {
    if (o.starts_with("oracle.") || o.starts_with("label.")) overrides.push_back(o);
  }
  const bool is_default = spec.oracle.members == setup::make_run_spec(config::Config::defaults()).oracle.members;
  if (!sets_key(overrides, "oracle.members") && is_default)
    overrides.push_back("oracle.members=" + std::to_string(kGridMembers));
  return overrides;
}

}  // namespace

std::string label_run_folder(const LabelTarget& target) {
  if (fs::is_directory(target.target)) {
    PAL_CHECK(target.run_dir.empty(), "--run-dir is for a config, but a run folder was given", target.target,
              "leave out --run-dir");
    return target.target;
  }
  PAL_CHECK(fs::exists(target.target), "no such run folder or config", target.target,
            "give the run folder that pal train printed, or a YAML config");
  const config::Config config = config::Config::load(target.target, target.overrides);
  PAL_CHECK(!setup::make_run_spec(config).data.train.empty(), "no training set is given", "data.train is empty",
            "set data.train to a .h5 file, or a file of features");
  const std::string run = target.run_dir.empty() ? "runs/" + fs::path(target.target).stem().string() : target.run_dir;
  if (!fs::exists(run + "/config.yaml")) {
    dist::RunFolder(run, config, dist::Resume::automatic).keep_config();
    return run;
  }
  std::string keys;
  for (const std::string& key : run_config(run).differing_keys(config)) {
    if (!key.starts_with("oracle.")) keys += (keys.empty() ? "" : ", ") + key;
  }
  PAL_CHECK(keys.empty(), "the run folder " + run + " holds a run of another config; these keys differ", keys,
            "choose another folder with --run-dir");
  return run;
}

RunGraph open_label_graph(const LabelTarget& target, const std::string& run) {
  std::vector<std::string> overrides = page_overrides(target, run_spec(run));
  RunGraph graph = open_run_graph(run, overrides);
  const std::vector<int64_t> labels = setup::known_labels(graph.spec, *graph.data, graph.subset);
  const bool known = std::any_of(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
  if (known || sets_key(overrides, "oracle.templates") || graph.spec.oracle.templates != oracle::Templates::given)
    return graph;
  graph.spec.oracle.templates = oracle::Templates::discover;
  return graph;
}

label::LabelSpec label_words(const LabelTarget& target, const RunGraph& graph) {
  if (fs::is_directory(target.target)) return setup::label_spec(graph.spec.config);
  return setup::label_spec(config::Config::load(target.target, target.overrides));
}

LabelRun::LabelRun(const std::string& run, const RunGraph& graph, oracle::Ledger& ledger, label::AnswerService& service,
                   const label::Users& people, const Pictures& pictures, label::LabelSpec words, at::Device device)
    : run_(run),
      graph_(graph),
      words_(std::move(words)),
      device_(device),
      ledger_(ledger),
      pictures_(pictures),
      labels_(setup::known_labels(graph.spec, *graph.data, graph.subset)),
      consensus_(graph.spec.oracle.consensus),
      questions_(graph.spec.oracle.questions_per_round),
      budget_(graph.spec.oracle.limits.questions),
      sampler_(oracle::make_query_sampler(graph.spec.oracle, graph.data->parents())) {
  PAL_CHECK(sampler_ != nullptr || service.queue().open() > 0 || service.writer() == label::Writer::job,
            "the run has no sampler and no open question", "oracle.sampler=none",
            "name a sampler: pal label RUN oracle.sampler=captcha");
  BackgroundParts parts{service,
                        people,
                        [this] { return label::label_stats(ledger_, graph_.store, consensus_, labels_); },
                        [this] { return read_facts(); },
                        {},
                        service.writer() == label::Writer::job
                            ? "the job that trains chooses the questions, every oracle.every steps"
                            : "oracle.sampler=none: pal ask, or pal label with a sampler, chooses the next ones",
                        [this](const std::string& line) { log(line); }};
  if (sampler_ && service.writer() == label::Writer::page) parts.ask = [this] { return ask(); };
  background_ = std::make_unique<BackgroundWorker>(parts);
}

std::string LabelRun::node_name(int64_t node) const { return launch::node_name(*graph_.data, node); }

// By its own label, or by that of a sample known to be the same.
std::string LabelRun::class_name(int64_t sample) const {
  const std::vector<std::string>& classes = graph_.data->classes();
  const auto name = [&](int64_t i) {
    const int64_t label = i >= 0 && i < static_cast<int64_t>(labels_.size()) ? labels_[i] : -1;
    return label >= 0 && label < static_cast<int64_t>(classes.size()) ? classes[label] : std::string();
  };
  if (!words_.class_names) return "";
  if (std::string own = name(sample); !own.empty()) return own;
  const std::shared_ptr<const label::LabelStats> s = stats();
  if (!s || !s->store || sample < 0 || sample >= s->store->samples()) return "";
  const auto same = s->examples.find(s->store->component(sample));
  if (same == s->examples.end()) return "";
  for (const int64_t i : same->second) {
    if (std::string inferred = name(i); !inferred.empty()) return inferred;
  }
  return "";
}

RunFacts LabelRun::read_facts() const {
  RunFacts facts;
  facts.name = fs::path(run_).lexically_normal().filename().string();
  if (facts.name.empty()) facts.name = fs::path(run_).lexically_normal().parent_path().filename().string();
  facts.samples = graph_.data->size();
  facts.classes = static_cast<int64_t>(graph_.data->classes().size());
  facts.budget = budget_;
  facts.images = pictures_.any();
  facts.words = words_;
  facts.unused = graph::answers_without_weight(graph_.spec.graph.kind);
  if (!fs::exists(run_ + "/metrics.jsonl")) return facts;
  const record::RunMetrics metrics = record::read_metrics(run_ + "/metrics.jsonl");
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

AskResult LabelRun::ask() const {
  RunGraph graph = graph_;
  AskOptions options;
  options.questions = questions_;
  options.untrained = Untrained::by_inputs;
  options.threads = io::usable_cores();
  options.device = device_;
  insert_ledger(graph, ledger_);
  const auto local = comm::make_local_comm();
  try {
    const AskedRound asked = ask_round(run_, graph, *sampler_, ledger_, options, *local);
    AskResult result{0, asked.why};
    for (const oracle::Query& query : asked.queries) result.questions += static_cast<int64_t>(query.members.size());
    return result;
  } catch (...) {  // people read it on the page: a sentence, also where LibTorch throws
    throw as_error(std::current_exception());
  }
}

std::string LabelRun::exported(const std::string& name) const {
  const std::map<std::string, oracle::AnswerFormat> formats = {
      {"answers.jsonl", oracle::AnswerFormat::jsonl},
      {"answers.csv", oracle::AnswerFormat::csv},
      {"label-studio.json", oracle::AnswerFormat::label_studio},
      {"edges.csv", oracle::AnswerFormat::edges}};
  const std::string path = run_ + "/label/" + name;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  oracle::export_answers(ledger_, path, formats.at(name), consensus_, 0, task_content(words_, *graph_.data, pictures_));
  return io::read_whole_file(path);
}

// On standard error; lines of several threads do not mix.
void LabelRun::log(const std::string& line) const {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  fmt::print(stderr, "{}\n", printable(line));
}

double LabelRun::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace pal::launch
