// cmd_labels: `pal labels RUN --out labels.csv`: the class of every sample, how it is known, and the answers behind it.
#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "core/eval/knn.h"
#include "core/graph/similarity_groups.h"
#include "core/io/csv.h"
#include "core/io/files.h"
#include "core/setup/setup.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/process/machine.h"
#include "launch/run/device_option.h"
#include "launch/run/run_graph.h"
#include "launch/run/trained_run.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct LabelsArguments {
  std::string run, out, names, device, name = "group-{}";
  bool predict = true;
  eval::KnnOptions knn;
};

struct LabelRow {
  std::string name, how;
  double confidence = 0;
  std::string answers;  // query:member;…
};

// The class of a sample: its component; without deduction, where wrong answers may have joined components, its first
// similarity group.
int64_t class_of(const graph::GraphStore& store, int64_t sample) {
  if (store.deduction() == graph::Deduction::on) return store.component(sample);
  const std::vector<int64_t> stars = graph::groups_of(store, sample);
  return stars.empty() ? graph::group_about(sample) : stars[0];
}

// Names by a file of sample,name: each names the class of that sample.
std::map<int64_t, std::string> read_names(const std::string& path, const graph::GraphStore& store) {
  std::map<int64_t, std::string> names;  // class → name
  if (path.empty()) return names;
  for (const std::vector<std::string>& row : io::read_csv(path)) {
    char* end = nullptr;
    const int64_t sample = row[0].empty() ? -1 : std::strtoll(row[0].c_str(), &end, 10);
    if (names.empty() && row[0] == "sample") continue;
    PAL_DATA_CHECK(row.size() >= 2 && end != nullptr && *end == 0 && sample >= 0 && sample < store.samples(),
                   path + ": sample", row[0],
                   "give lines of sample,name with samples from 0 to " + std::to_string(store.samples() - 1));
    const auto [at, fresh] = names.emplace(class_of(store, sample), row[1]);
    PAL_DATA_CHECK(fresh || at->second == row[1], path + " names one class twice", at->second + " and " + row[1],
                   "samples with these names are known to be the same: keep one name");
  }
  return names;
}

class Labels {
 public:
  Labels(const LabelsArguments& args, const RunGraph& graph)
      : args_(args), graph_(graph), rows_(graph.store.samples()) {
    for (const oracle::Decision& d : graph.decisions) {
      if (d.relation() == graph::Relation::same && graph.store.relation(d.i, d.j) == graph::Relation::same)
        decided_[std::minmax(d.i, d.j)] = d;
    }
    name_classes();
    for (int64_t i = 0; i < graph.store.samples(); ++i) describe(i);
  }

  std::vector<LabelRow>& rows() { return rows_; }

  // Samples of unknown class get the votes of their nearest known neighbors.
  void predict(const at::Tensor& features) {
    std::vector<int64_t> known, open;
    for (size_t i = 0; i < rows_.size(); ++i) (rows_[i].how.empty() ? open : known).push_back(static_cast<int64_t>(i));
    if (known.empty() || open.empty()) return;
    const auto k = std::min<int64_t>(args_.knn.k, static_cast<int64_t>(known.size()));
    const at::Tensor support = features.index_select(0, at::tensor(known));
    constexpr size_t kChunk = 1024;
    Progress bar("predict", static_cast<int64_t>(open.size()));
    for (size_t first = 0; first < open.size(); first += kChunk) {
      const size_t end = std::min(open.size(), first + kChunk);
      const std::vector<int64_t> some(open.begin() + static_cast<ptrdiff_t>(first),
                                      open.begin() + static_cast<ptrdiff_t>(end));
      const eval::Neighbors near = eval::neighbors(features.index_select(0, at::tensor(some)), support, k);
      for (size_t q = 0; q < some.size(); ++q)
        vote(rows_[some[q]], near.index.data_ptr<int64_t>() + q * k, near.similarity.data_ptr<double>() + q * k, k,
             known);
      bar.update(static_cast<int64_t>(end), "samples");
    }
  }

 private:
  // The class of most of the k nearest among `known`, weighted by their similarity.
  void vote(LabelRow& row, const int64_t* index, const double* similarity, int64_t k,
            const std::vector<int64_t>& known) const {
    std::map<std::string, double> votes;
    double all = 0;
    for (int64_t n = 0; n < k; ++n) {
      if (index[n] < 0) continue;
      const double weight = std::exp(similarity[n] / args_.knn.temperature);
      votes[rows_[known[index[n]]].name] += weight;
      all += weight;
    }
    const auto best =
        std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best != votes.end()) row = {best->first, "predicted", best->second / all, ""};
  }

  // A class has a label, a name, or two members.
  void name_classes() {
    const graph::GraphStore& store = graph_.store;
    names_ = read_names(args_.names, store);
    for (int64_t i = 0; i < store.samples(); ++i) {  // labels first: they name the classes of the others
      const int64_t label = store.label(i);
      if (label < 0) continue;
      const std::vector<std::string>& classes = graph_.data->classes();
      names_.emplace(class_of(store, i),
                     label < static_cast<int64_t>(classes.size()) ? classes[label] : std::to_string(label));
    }
    for (int64_t i = 0; i < store.samples(); ++i) {
      const int64_t of = class_of(store, i);
      if (!store.known(i) && !names_.count(of)) continue;
      std::string name = args_.name;
      if (const size_t at = name.find("{}"); at != std::string::npos) name.replace(at, 2, std::to_string(i));
      names_.emplace(of, name);
      // The sample that the others were compared with: one whose label was given, else the first.
      const auto [at, fresh] = representative_.emplace(of, i);
      if (!fresh && given(i) && !given(at->second)) at->second = i;
    }
  }

  bool given(int64_t sample) const { return given_label(sample) >= 0; }
  int64_t given_label(int64_t sample) const {
    if (given_.empty()) given_ = setup::known_labels(graph_.spec, *graph_.data, graph_.subset);
    return given_[sample];
  }

  // The answers by which a sample belongs to its class: a chain, or without deduction its own answer.
  std::vector<graph::Link> behind(int64_t i, int64_t of) const {
    const graph::GraphStore& store = graph_.store;
    if (store.deduction() == graph::Deduction::on) return store.explain(representative_.at(of), i);
    std::vector<graph::Link> own;
    store.for_each_answer(i, [&](int64_t other, graph::Relation relation) {
      const bool center = of == graph::group_about(other) ||
                          (store.label(other) >= 0 && of == graph::group_of_label(store.label(other)));
      if (relation == graph::Relation::same && center) own = {{i, other, relation, 0}};  // the first one that was given
    });
    return own;
  }

  void describe(int64_t i) {
    const int64_t of = class_of(graph_.store, i);
    const auto named = names_.find(of);
    if (named == names_.end()) return;
    LabelRow row{named->second, "given", 1, ""};
    if (!given(i)) {
      int64_t answers = 0, given_links = 0;
      for (const graph::Link& link : behind(i, of)) {
        given_links += link.answer == graph::Link::kByLabels;
        if (link.answer == graph::Link::kByLabels) continue;
        ++answers;
        const auto at = decided_.find(std::minmax(link.i, link.j));
        if (at == decided_.end()) continue;
        row.confidence *= at->second.confidence;
        row.answers += fmt::format("{}{}:{}", row.answers.empty() ? "" : ";", at->second.query, at->second.j);
      }
      const bool grouped = !graph_.spec.graph.groups.empty();
      row.how = grouped && answers == 0 ? "group" : answers > 1 || (grouped && given_links > 0) ? "implied" : "asked";
    }
    rows_[i] = std::move(row);
  }

  const LabelsArguments& args_;
  const RunGraph& graph_;
  std::vector<LabelRow> rows_;
  std::map<std::pair<int64_t, int64_t>, oracle::Decision> decided_;
  std::map<int64_t, std::string> names_;                 // class →
  std::unordered_map<int64_t, int64_t> representative_;  // class → sample
  mutable std::vector<int64_t> given_;
};

}  // namespace

int cmd_labels(const std::vector<std::string>& arguments, Context& context) {
  LabelsArguments args;
  bool no_prediction = false;
  CLI::App app(
      "Writes the class of every sample: given, by its group, asked, inferred from answers, or predicted by the model, "
      "with the answers behind it.",
      "pal labels");
  app.add_option("RUN", args.run, "run folder")->required();
  app.add_option("--out", args.out, "file to write: id,path,class,how,confidence,answers")->required();
  app.add_option("--names", args.names, "CSV of sample,name: names the class of that sample")->check(CLI::ExistingFile);
  app.add_option("--name", args.name, "name of a class without one; {} is its first sample")->capture_default_str();
  app.add_flag("--known-only", no_prediction, "leave the class empty where nothing is known");
  app.add_option("--k", args.knn.k, "neighbors that predict")->check(CLI::PositiveNumber)->capture_default_str();
  add_device_option(app, args.device);
  app.footer(
      "Examples:\n"
      "  pal labels runs/mine --out labels.csv\n"
      "  pal labels runs/mine --names names.csv --known-only --out labels.csv");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  keep_freed_memory();
  RunGraph graph = open_run_graph(args.run);
  PAL_CHECK(graph.spec.graph.groups.empty() || graph.spec.oracle.asks(),
            "the graph of this run knows groups, not classes", graph.spec.graph.groups, "the groups are in that file");
  if (std::filesystem::exists(args.run + "/ledger.sqlite"))
    insert_ledger(graph, oracle::Ledger(args.run + "/ledger.sqlite", oracle::kAnyRun));
  Labels labels(args, graph);
  dist::World& world = context.start_world();
  const bool open =
      std::any_of(labels.rows().begin(), labels.rows().end(), [](const LabelRow& r) { return r.how.empty(); });
  if (open && !no_prediction) {
    at::set_num_threads(setup::compute_threads(graph.spec.train, world.cores()));
    const at::Device device = encoder_device(args.device, graph.spec.train, world);
    const TrainedRun trained = load_trained_run(args.run, graph.spec, world.compute(), device);
    labels.predict(embed_all(*trained.encoder, graph.spec, *graph.data, eval::EmbedWhat::features, world, "samples"));
  }
  std::string lines = "id,path,class,how,confidence,answers\n";
  std::map<std::string, int64_t> counts;
  for (size_t i = 0; i < labels.rows().size(); ++i) {
    const LabelRow& r = labels.rows()[i];
    const std::string how = r.how.empty() ? "unknown" : r.how;
    lines += fmt::format("{},{},{},{},{:.4f},{}\n", i, io::csv_field(graph.data->id(static_cast<int64_t>(i))),
                         io::csv_field(r.name), how, r.confidence, r.answers);
    ++counts[how];
  }
  io::write_file_atomically(args.out, lines);
  std::vector<std::vector<std::string>> table = {{"labels", "samples"}};
  for (const auto& [how, count] : counts) table.push_back({how, std::to_string(count)});
  fmt::print("{}{}\n", format_table(table), args.out);
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
