#include "core/oracle/labeler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/graph/graph_files.h"
#include "core/oracle/oracle_spec.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

class Simulated final : public Labeler {
 public:
  Simulated(std::vector<int64_t> labels, const SimulatedOptions& options, std::vector<int64_t> parents)
      : labels_(std::move(labels)), parents_(std::move(parents)), options_(options) {
    PAL_DATA_CHECK(!labels_.empty(), "oracle.labeler=labels needs labels, but the data set has none", "",
                   "use a data set with labels");
    PAL_CHECK(options.noise >= 0 && options.noise <= 1, "oracle.noise", options.noise, "give a number from 0 to 1");
  }

  std::string name() const override { return "labels"; }

  std::vector<Answer> answer(const Query& query, int64_t vote) const override {
    std::vector<Answer> answers;
    if (vote >= options_.annotators) return answers;
    const int64_t annotator = (query.id + vote) % options_.annotators;
    const std::string who = options_.annotators == 1 ? name() : name() + "-" + std::to_string(annotator);
    for (int64_t member : query.members) {
      answers.push_back(
          {query.id, query.template_sample, member, verdict(query, member, annotator), who, 0, cost(query)});
    }
    return answers;
  }

 private:
  Verdict verdict(const Query& query, int64_t member, int64_t annotator) const {
    const int64_t a = label(query.template_sample), b = label(member);
    if (b < 0 || (a < 0 && query.kind != QueryKind::coarse)) return Verdict::unsure;
    Random random(options_.seed, Purpose::noise, static_cast<uint64_t>(query.id), static_cast<uint64_t>(member),
                  static_cast<uint32_t>(annotator));
    const bool flipped = random.next_double() < noise(annotator);
    const bool truth = query.kind == QueryKind::coarse ? under(b, query.node) : a == b;
    return truth != flipped ? Verdict::yes : Verdict::no;
  }
  double noise(int64_t annotator) const {
    const std::vector<double>& each = options_.annotator_noise;
    return each.empty() ? options_.noise : each[std::min<size_t>(annotator, each.size() - 1)];
  }
  double cost(const Query& query) const {
    if (query.kind == QueryKind::coarse && options_.coarse_cost > 0) return options_.coarse_cost;
    const bool grid = query.kind == QueryKind::captcha || query.kind == QueryKind::outliers;
    return grid && options_.grid_cost > 0 ? options_.grid_cost / static_cast<double>(query.members.size())
                                          : options_.cost;
  }
  int64_t label(int64_t sample) const {
    PAL_DATA_CHECK(sample >= 0 && sample < static_cast<int64_t>(labels_.size()), "sample of a query", sample,
                   "samples are 0 to " + std::to_string(labels_.size() - 1));
    return labels_[sample];
  }
  bool under(int64_t node, int64_t ancestor) const {
    const auto nodes = static_cast<int64_t>(parents_.size());
    PAL_DATA_CHECK(ancestor >= 0 && ancestor < nodes, "class node of a coarse question", ancestor,
                   "the data set's taxonomy has nodes 0 to " + std::to_string(nodes - 1));
    for (int64_t steps = 0; node >= 0 && node < nodes; node = parents_[node], ++steps) {
      if (node == ancestor) return true;
      PAL_DATA_CHECK(steps < nodes, "the taxonomy has a cycle above class node", node,
                     "import the data set again with a tree");
    }
    return false;
  }

  const std::vector<int64_t> labels_, parents_;
  const SimulatedOptions options_;
};

class PairsFileLabeler final : public Labeler {
 public:
  explicit PairsFileLabeler(graph::WeightedEdges pairs) : pairs_(std::move(pairs)) {}

  std::string name() const override { return "pairs"; }

  std::vector<Answer> answer(const Query& query, int64_t vote) const override {
    std::vector<Answer> answers;
    if (vote > 0) return answers;
    for (int64_t member : query.members) {
      const double weight = query.kind == QueryKind::coarse ? 0 : pairs_.weight(query.template_sample, member);
      const Verdict said = weight > 0 ? Verdict::yes : weight < 0 ? Verdict::no : Verdict::unsure;
      answers.push_back({query.id, query.template_sample, member, said, name()});
    }
    return answers;
  }

 private:
  const graph::WeightedEdges pairs_;
};

}  // namespace

std::unique_ptr<Labeler> make_simulated_labeler(std::vector<int64_t> labels, const SimulatedOptions& options,
                                                std::vector<int64_t> parents) {
  return std::make_unique<Simulated>(std::move(labels), options, std::move(parents));
}

std::unique_ptr<Labeler> make_pairs_labeler(graph::WeightedEdges pairs) {
  return std::make_unique<PairsFileLabeler>(std::move(pairs));
}

std::unique_ptr<Labeler> make_labeler(const OracleSpec& spec, LabelerContext of) {
  switch (spec.labeler) {
    case LabelerKind::labels: {
      SimulatedOptions options;
      options.noise = spec.noise;
      options.seed = spec.seed;
      options.cost = spec.cost_pair;
      options.grid_cost = spec.cost_grid;
      options.coarse_cost = spec.cost_coarse;
      options.annotators = spec.annotators;
      options.annotator_noise = spec.annotator_noise;
      return make_simulated_labeler(std::move(of.labels), options, std::move(of.parents));
    }
    case LabelerKind::pairs: {
      const int64_t samples = of.samples > 0 ? of.samples : static_cast<int64_t>(of.labels.size());
      return make_pairs_labeler(
          graph::WeightedEdges(samples, graph::read_pairs(spec.pairs, samples).pairs, spec.pairs));
    }
    case LabelerKind::exchange:
      return make_file_labeler(of.folder, std::move(of.name));
  }
  PAL_ASSERT(false, "a kind of labeler without a factory");
}

}  // namespace pal::oracle
