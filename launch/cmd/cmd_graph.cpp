// cmd_graph: `pal graph info|convert`: shows a file of weighted pairs, or writes it in the other format.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/data/dataset.h"
#include "core/graph/graph_files.h"
#include "core/graph/store.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

struct GraphArguments {
  std::string file, out, data;
  int64_t samples = graph::kAsInFile;
};

graph::WeightedEdges read_edges(const GraphArguments& args) {
  graph::PairsFile file;
  if (args.data.empty()) {
    file = graph::read_pairs(args.file, args.samples);
  } else {
    const auto data = data::Dataset::open(args.data);
    const io::NameIndex names(data::sample_names(*data));
    file = graph::read_pairs(args.file, data->size(), [&]() -> const io::NameIndex& { return names; });
  }
  return {file.samples, std::move(file.pairs), args.file};
}

// Samples joined by pairs of positive weight.
int64_t positive_components(const graph::WeightedEdges& edges) {
  graph::GraphStore store(edges.samples());
  for (int64_t i = 0; i < edges.samples(); ++i) {
    for (int64_t k = edges.offsets()[i]; k < edges.offsets()[i + 1]; ++k) {
      if (edges.columns()[k] > i && edges.weights()[k] > 0) store.insert(i, edges.columns()[k], graph::Relation::same);
    }
  }
  return store.components();
}

int run_info(const GraphArguments& args) {
  const graph::WeightedEdges edges = read_edges(args);
  int64_t linked = 0, loops = 0, largest = 0;
  for (int64_t i = 0; i < edges.samples(); ++i) {
    const int64_t degree = edges.offsets()[i + 1] - edges.offsets()[i];
    linked += degree > 0;
    largest = std::max(largest, degree);
    loops += edges.weight(i, i) != 0;
  }
  const std::vector<double>& w = edges.weights();
  const auto [low, high] =
      w.empty() ? std::pair(0.0, 0.0)
                : std::pair(*std::min_element(w.begin(), w.end()), *std::max_element(w.begin(), w.end()));
  int64_t negative = 0;
  for (int64_t i = 0; i < edges.samples(); ++i) {
    for (int64_t k = edges.offsets()[i]; k < edges.offsets()[i + 1]; ++k)
      negative += edges.columns()[k] >= i && w[k] < 0;
  }
  fmt::print("{}", format_table({{"what", "value"},
                                 {"samples", std::to_string(edges.samples())},
                                 {"pairs", std::to_string(edges.pairs())},
                                 {"of negative weight", std::to_string(negative)},
                                 {"self-loops", std::to_string(loops)},
                                 {"samples with a pair", std::to_string(linked)},
                                 {"most pairs of a sample", std::to_string(largest)},
                                 {"components of positive pairs", std::to_string(positive_components(edges))},
                                 {"weights", fmt::format("{:g} to {:g}", low, high)}}));
  return 0;
}

int run_convert(const GraphArguments& args) {
  const graph::WeightedEdges edges = read_edges(args);
  graph::write_pairs(args.out, edges);
  fmt::print("{} pairs of {} samples; train with: graph.kind=pairs graph.pairs={}\n", edges.pairs(), edges.samples(),
             args.out);
  return 0;
}

}  // namespace

int cmd_graph(const std::vector<std::string>& arguments, Context&) {
  CLI::App app(
      "Shows and converts weighted pairs: CSV i,j,weight (numbers or names of samples) or an HDF5 CSR group (pal help "
      "graph).",
      "pal graph");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  pal graph info pairs.csv --samples 60000\n  pal graph convert pairs.csv pairs.h5 --samples 60000");
  GraphArguments args;
  CLI::App& info = *app.add_subcommand("info", "Checks a file of pairs and shows its contents.");
  CLI::App& convert = *app.add_subcommand(
      "convert", "Writes the pairs in the other format, chosen by the extension of OUT: .h5, else CSV.");
  for (CLI::App* command : {&info, &convert}) {
    command->add_option("FILE", args.file, "pairs")->required();
    command->add_option("--data", args.data, "data set whose samples the pairs name");
    command->add_option("--samples", args.samples, "number of samples in the data set (default: taken from the file)")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  }
  convert.add_option("OUT", args.out, "file to write")->required();
  info.footer(
      "Examples:\n  pal graph info pairs.csv --samples 60000\n  pal graph info names.csv --data data/photos.h5");
  convert.footer("Example:\n  pal graph convert pairs.csv pairs.h5 --samples 60000");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  return info.parsed() ? run_info(args) : run_convert(args);
}

}  // namespace pal::launch
